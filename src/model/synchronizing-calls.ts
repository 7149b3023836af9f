/**
 * API calls in which the host waits for the device (CUDA Runtime API reference, "API synchronization behavior", and the
 * driver's and HIP's counterparts). A gap before a launch is `synchronization` while its thread is in one of them.
 * cudaMemcpyAsync is not included: it returns immediately, except for pageable memory, where the copy itself is busy.
 */
const synchronizingCalls: readonly RegExp[] = [
  // Waits by name: cudaDeviceSynchronize, cuStreamSynchronize, cudaEventSynchronize, hipDeviceSynchronize, …
  /^(?:cuda|cu|hip)(?:Device|Stream|Event|Ctx|Thread|Context)Synchronize(?:_ptsz)?$/,
  // Copies and sets that return after completion.
  /^(?:cuda|hip)Memcpy(?:2D|3D|Peer|3DPeer|ToSymbol|FromSymbol|ToArray|FromArray|2DToArray|2DFromArray)?(?:_ptds)?$/,
  /^(?:cu|hip)Memcpy(?:HtoD|DtoH|DtoD|HtoA|AtoH|AtoA|DtoA|AtoD|2D|2DUnaligned|3D|3DPeer|Peer)?(?:_v2)?(?:_ptds)?$/,
  /^hipMemcpyWithStream$/,
  // CUDA's counterpart returns before the device memory is set.
  /^hipMemset(?:2D|3D)?$/,
  // Allocator calls that wait for the device: allocation maps memory, freeing waits for users of the memory.
  /^(?:cuda|hip)(?:Malloc|MallocHost|MallocManaged|MallocPitch|Malloc3D|HostAlloc|Free|FreeHost|HostFree|HostRegister|HostUnregister|HostMalloc|ExtMallocWithFlags)$/,
  /^cuMem(?:Alloc|AllocHost|AllocManaged|AllocPitch|HostAlloc|Free|FreeHost|HostRegister|HostUnregister|Unmap|Release)(?:_v2)?$/,
];

/** @param name of the API call; a version suffix such as _v3020 is allowed */
export function isSynchronizing(name: string): boolean {
  const plain = name.replace(/_v\d{4,}$/, '');
  return synchronizingCalls.some((pattern) => pattern.test(plain));
}
