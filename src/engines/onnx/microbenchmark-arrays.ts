import type { OnnxTensor } from './onnx-file.js';
import { draw, streamKey } from './random-weights.js';

/** Values of one array of a kernel, row-major. */
export interface HostArray {
  name: string;
  shape: number[];
  type: 'float32' | 'int64' | 'int32';
  data: Float32Array | BigInt64Array | Int32Array;
}

export const sizeOf = (shape: readonly number[]): number =>
  shape.reduce((product, value) => product * value, 1);

/** Uniform with standard deviation `std`. Random instead of zeros, because data affects power and clocks. */
export function floats(name: string, shape: number[], std = 1): HostArray {
  const key = streamKey(7, name);
  const scale = (std * Math.sqrt(3)) / 2 ** 31;
  const data = new Float32Array(sizeOf(shape));
  for (let i = 0; i < data.length; i++) data[i] = draw(key, i) * scale;
  return { name, shape, type: 'float32', data };
}

/** Integers from 0 to below `end`. */
export function ids(name: string, shape: number[], end: number): HostArray {
  const key = streamKey(7, name);
  const data = BigInt64Array.from({ length: sizeOf(shape) }, (_, i) => BigInt((draw(key, i) >>> 0) % end));
  return { name, shape, type: 'int64', data };
}

export function int32(name: string, shape: number[], value: number): HostArray {
  return { name, shape, type: 'int32', data: new Int32Array(sizeOf(shape)).fill(value) };
}

export function integers(name: string, values: readonly number[]): HostArray {
  return { name, shape: [values.length], type: 'int64', data: BigInt64Array.from(values, BigInt) };
}

export function constant({ name, shape, type, data }: HostArray): OnnxTensor {
  return {
    name,
    type,
    shape,
    chunks: () => [new Uint8Array(data.buffer, data.byteOffset, data.byteLength)],
  };
}
