import type { Launch } from '../../model/documents/predict.js';
import type { LaunchCosts } from './assumptions.js';
import type { KernelTime } from './kernel-time.js';
import type { StageKernel } from './fused-kernel.js';

interface TimedKernel {
  kernel: StageKernel;
  time: KernelTime;
  /** All of its runs in the stage, ns; at least a node each in a graph. */
  totalNs: number;
}

export interface Composed {
  kernels: TimedKernel[];
  launches: number;
  deviceNs: number;
  hostNs: number;
  totalNs: number;
  limitedBy: 'device' | 'host';
}

/**
 * A stage from its kernels, one after another. Eager: the host launches ahead, and the stage takes the longer of its time
 * and the device's. Graph: no kernel takes less than a node does. Measured kernels hold the gap between two already.
 */
export function compose(
  kernels: readonly { kernel: StageKernel; time: KernelTime }[],
  { nodeNs, hostPerLaunchNs, hostPerStageNs }: LaunchCosts,
  launch: Launch,
): Composed {
  const timed = kernels.map(({ kernel, time }): TimedKernel => {
    const least = launch === 'graph' ? nodeNs * kernel.launches : 0;
    return { kernel, time, totalNs: Math.max(time.ns, least) * kernel.count };
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
