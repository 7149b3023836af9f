import type { Bound } from '../../model/documents/counters.js';
import { type Metrics, valueOf } from './metrics.js';
import { formatPercent, formatQuantity, formatSetting } from '../../vocabulary/format.js';

/**
 * NVIDIA's own rule (Nsight Compute, section SpeedOfLight, rule SOLBottleneck), thresholds in % of peak:
 * a side at 80 or more is near its peak; both under 60 is latency, with less than one wave because the grid is too
 * small; otherwise the side that leads by 10 or more.
 */
const nearPeak = 80;
const latencyBelow = 60;
const minLead = 10;

export function speedOfLightBound(metrics: Metrics): Bound {
  const sm = valueOf(metrics, smThroughput);
  const memory = valueOf(metrics, memoryThroughput);
  if (sm === null || memory === null) {
    const absent = sm === null ? smThroughput : memoryThroughput;
    return { by: null, cause: 'not_collected', text: `ncu did not collect ${absent}.` };
  }
  const numbers = `SM ${formatQuantity(sm, '%')}, memory ${formatQuantity(memory, '%')} of peak`;
  const leader = sm > memory ? 'compute' : 'memory';
  if (sm >= nearPeak || memory >= nearPeak) {
    return { by: leader, cause: 'near_peak', text: `${numbers}: ${leader} is near its peak.` };
  }
  if (sm < latencyBelow && memory < latencyBelow) {
    const waves = valueOf(metrics, 'launch__waves_per_multiprocessor');
    if (waves !== null && waves < 1) {
      const text = `${numbers}: the grid is too small: it fills ${part(waves)} of one wave of blocks.`;
      return { by: 'latency', cause: 'grid_too_small', text };
    }
    const text = `${numbers}: both under ${formatSetting(latencyBelow, '%')}: latency-bound.`;
    return { by: 'latency', cause: 'low_throughput', text };
  }
  if (Math.abs(sm - memory) < minLead) {
    return { by: 'balanced', cause: 'balanced', text: `${numbers}: compute and memory are balanced.` };
  }
  return { by: leader, cause: 'ahead', text: `${numbers}: ${leader} is used more.` };
}

export const smThroughput = 'sm__throughput.avg.pct_of_peak_sustained_elapsed';
export const memoryThroughput = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed';

/** ncu rounds to hundredths, so 0.00 may be any smaller value. */
const part = (waves: number) => (waves < 0.005 ? 'under 1 %' : `${formatPercent(waves)}`);
