/**
 * API calls in which the host waits for the device, by purpose (CUDA Runtime API reference, "API synchronization behavior", and the
 * driver's and HIP's counterparts), without suffixes of versions and streams. A gap before a launch is `synchronization` while its thread
 * is in one of them. cudaMemcpyAsync is not included: it returns immediately, except for pageable memory, where the copy itself is busy.
 */
const synchronizingCalls: Readonly<Record<WaitPurpose, readonly RegExp[]>> = {
  // Waits by name: cudaDeviceSynchronize, cuStreamSynchronize, cudaEventSynchronize, hipDeviceSynchronize, …
  synchronize: [/^(?:cuda|cu|hip)(?:Device|Stream|Event|Ctx|Thread|Context)Synchronize$/],
  // Copies and sets that return after completion.
  copy: [
    /^(?:cuda|hip)Memcpy(?:2D|3D|Peer|3DPeer|ToSymbol|FromSymbol|ToArray|FromArray|2DToArray|2DFromArray)?$/,
    /^(?:cu|hip)Memcpy(?:HtoD|DtoH|DtoD|HtoA|AtoH|AtoA|DtoA|AtoD|2D|2DUnaligned|3D|3DPeer|Peer)?$/,
    /^hipMemcpyWithStream$/,
    // CUDA's counterpart returns before the device memory is set.
    /^hipMemset(?:2D|3D)?$/,
  ],
  // Allocation maps memory, freeing waits for users of the memory.
  allocator: [
    /^(?:cuda|hip)(?:Malloc|MallocHost|MallocManaged|MallocPitch|Malloc3D|HostAlloc|Free|FreeHost|HostFree|HostRegister|HostUnregister|HostMalloc|ExtMallocWithFlags)$/,
    /^cuMem(?:Alloc|AllocHost|AllocManaged|AllocPitch|HostAlloc|Free|FreeHost|HostRegister|HostUnregister|Unmap|Release)$/,
  ],
};

export type WaitPurpose = 'synchronize' | 'copy' | 'allocator';

/**
 * What an API call waits for the device for; null if it does not wait.
 * @param name may have suffixes: cuMemFree_v2, cudaMemcpy_ptds_v7000
 */
export function waitPurpose(name: string): WaitPurpose | null {
  const plain = withoutSuffix(name);
  const purposes = Object.keys(synchronizingCalls) as WaitPurpose[];
  return (
    purposes.find((purpose) => synchronizingCalls[purpose].some((pattern) => pattern.test(plain))) ?? null
  );
}

const withoutSuffix = (name: string): string => name.replace(/(?:_v\d+|_ptsz|_ptds)+$/, '');

/** Calls of an allocator with expandable segments: they map memory and do not wait for the device. */
const mappingCalls = /^(?:cu|hip)Mem(?:Create|Map|SetAccess|AddressReserve|AddressFree)$/;
/** Calls that allocate and free in the order of a stream. */
const streamOrderedCalls =
  /^(?:cuda|hip)(?:Malloc(?:FromPool)?|Free)Async$|^cuMem(?:Alloc(?:FromPool)?|Free)Async$/;

export const mapsMemory = (name: string): boolean => mappingCalls.test(withoutSuffix(name));

/** Whether an API call allocates, maps or frees memory, waiting for the device or not. */
export const isAllocatorCall = (name: string): boolean =>
  waitPurpose(name) === 'allocator' || mapsMemory(name) || streamOrderedCalls.test(withoutSuffix(name));

export const isSynchronizing = (name: string): boolean => waitPurpose(name) !== null;
