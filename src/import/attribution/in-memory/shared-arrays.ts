/** Arrays in shared memory: passing them to a thread does not copy. Initially zero. */
export const sharedFloats = (length: number): Float64Array<SharedArrayBuffer> =>
  new Float64Array(new SharedArrayBuffer(length * Float64Array.BYTES_PER_ELEMENT));

export const sharedInts = (length: number): Int32Array<SharedArrayBuffer> =>
  new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));

export const sharedBytes = (length: number): Uint8Array<SharedArrayBuffer> =>
  new Uint8Array(new SharedArrayBuffer(length));
