import type { FindingContext, Rule } from '../rule.js';
import type { Part } from '../test-steps.js';
import { allocatorChurn } from './allocator-churn.js';
import { gpuIdleBetweenRequests } from './gpu-idle-between-requests.js';
import { hostBound } from './host-bound.js';
import { hostCopies } from './host-copies.js';
import { launchBound } from './launch-bound.js';
import { logitsToHost } from './logits-to-host.js';
import { recompilation } from './recompilation.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';

/** Every rule about the host; rules without an expected finding must not fire. */
const hostRules: Rule[] = [
  launchBound,
  synchronizationEveryStep,
  hostBound,
  allocatorChurn,
  recompilation,
  hostCopies,
  logitsToHost,
  gpuIdleBetweenRequests,
];
/** Ids of the host rules that fire. */
export async function firing(context: FindingContext): Promise<string[]> {
  const names: string[] = [];
  for (const rule of hostRules) if ((await rule.find(context)).outcome === 'fired') names.push(rule.id);
  return names;
}

/** A launch of eager PyTorch: 8 µs of dispatch, 4 µs in the call, 2 µs until the kernel starts. */
export const launch: Part = { idle: { host: 8, launch_overhead: 4, launch_latency: 2 } };
