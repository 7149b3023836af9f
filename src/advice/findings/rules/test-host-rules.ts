import { firingOf, type Part } from '../test-steps.js';
import { allocatorChurn } from './allocator-churn.js';
import { gpuIdleBetweenRequests } from './gpu-idle-between-requests.js';
import { hostBound } from './host-bound.js';
import { hostCopies } from './host-copies.js';
import { launchBound } from './launch-bound.js';
import { logitsToHost } from './logits-to-host.js';
import { recompilation } from './recompilation.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';

/** Ids of the host rules that fire. */
export const firing = firingOf([
  launchBound,
  synchronizationEveryStep,
  hostBound,
  allocatorChurn,
  recompilation,
  hostCopies,
  logitsToHost,
  gpuIdleBetweenRequests,
]);

/** A launch of eager PyTorch: 8 µs of dispatch, 4 µs in the call, 2 µs until the kernel starts. */
export const launch: Part = { idle: { host: 8, launch_overhead: 4, launch_latency: 2 } };
