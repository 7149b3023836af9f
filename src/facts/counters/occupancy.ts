import type { Occupancy } from '../../model/documents/counters.js';
import { metricFigure, type Metrics, valueOf } from './metrics.js';

const resources = {
  registers: 'registers',
  shared_mem: 'shared memory',
  warps: 'block size (warps)',
  blocks: 'blocks per SM',
  barriers: 'barriers',
};

/** The occupancy limiter: the resource that allows the fewest blocks per SM. */
export function occupancyOf(metrics: Metrics): Occupancy {
  const limits = Object.entries(resources)
    .flatMap(([key, resource]) => {
      const blocks = valueOf(metrics, `launch__occupancy_limit_${key}`);
      return blocks === null ? [] : [{ resource, blocks }];
    })
    .sort((x, y) => x.blocks - y.blocks);
  const theoretical = metricFigure(metrics, 'sm__maximum_warps_per_active_cycle_pct', '%');
  const limited = theoretical.value !== null && theoretical.value < 99.5;
  return {
    achieved: metricFigure(metrics, 'sm__warps_active.avg.pct_of_peak_sustained_active', '%'),
    theoretical,
    limits,
    limited_by: limited
      ? limits.filter(({ blocks }) => blocks === limits[0]!.blocks).map(({ resource }) => resource)
      : [],
  };
}
