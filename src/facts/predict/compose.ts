import type { Launch } from '../../model/documents/predict.js';
import type { LaunchCosts } from './assumptions.js';
import type { KernelTime } from './kernel-time.js';
import type { StageKernel } from './fused-kernel.js';

interface TimedKernel {
  kernel: StageKernel;
  time: KernelTime;
  /** Total of its runs in the stage, ns; in a graph at least one node each. */
  totalNs: number;
}

export interface ComposedStage {
  kernels: TimedKernel[];
  launches: number;
  deviceNs: number;
  hostNs: number;
  totalNs: number;
  limitedBy: 'device' | 'host';
}

/**
 * Time of a stage with sequential kernels. Eager: the host launches ahead, and the stage takes the longer of host and
 * device time. Graph: a kernel takes at least one node. Both: the host's time per stage is added. Measured kernel times
 * include the gap to the next kernel.
 */
export function composeStage(
  kernels: readonly { kernel: StageKernel; time: KernelTime }[],
  { nodeNs, hostPerLaunchNs, hostPerStageNs }: LaunchCosts,
  launch: Launch,
): ComposedStage {
  const timed = kernels.map(({ kernel, time }): TimedKernel => {
    const minNs = launch === 'graph' ? nodeNs * kernel.launches : 0;
    return { kernel, time, totalNs: Math.max(time.ns, minNs) * kernel.count };
  });
  const launches = kernels.reduce((sum, { kernel }) => sum + kernel.launches * kernel.count, 0);
  const deviceNs = timed.reduce((sum, { totalNs }) => sum + totalNs, 0);
  const hostNs = launch === 'eager' ? launches * hostPerLaunchNs : 0;
  return {
    kernels: timed,
    launches,
    deviceNs,
    hostNs: hostNs + hostPerStageNs,
    totalNs: Math.max(deviceNs, hostNs) + hostPerStageNs,
    limitedBy: hostNs > deviceNs ? 'host' : 'device',
  };
}
