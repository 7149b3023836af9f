/** What the time of a bar is, by the head of its id: `inefficiency.gemm` is a bar of `inefficiency`. */
export const barMeanings = {
  roofline:
    'time that the necessary FLOPs and bytes of the stage take at the peaks of the device, if all overlap',
  serial: 'what operations cost because they run one after another, each at its own limit',
  kernels: 'time of kernels of a class whose necessary time is not known',
  inefficiency: 'time of kernels of a class above their roofline',
  nonessential: 'time of kernels that fusion or another choice would remove: elementwise, copies, casts',
  exposed_comm: 'communication while nothing computes',
  exposed_copy: 'copies while no kernel runs, by direction and kind of host memory',
  launch_latency:
    'from the return of the launch call to the start on the GPU, up to the usual latency of this GPU',
  launch_overhead: 'the GPU is idle while the host is inside a launch call',
  synchronization: 'the GPU is idle because the host was waiting for it in a call',
  device_dependency: 'work was launched in time and waits for other work of the GPU',
  host: 'the GPU is idle because the host does something else, by what it does',
  unattributed: 'measured time that nothing in the session explains',
  profiler_overhead: 'what the profiler added, where the same workload was also measured without it',
} as const;
export type BarHead = keyof typeof barMeanings;
