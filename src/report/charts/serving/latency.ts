import type { ServingResult } from '../../../model/documents/serving.js';
import { formatMs } from '../../format.js';
import type { Chart } from '../chart.js';
import { type Line, linesOption, markOf } from '../lines.js';
import { byLoad, levelLabel, levelName } from './levels.js';

export const servingMetrics = {
  ttft: 'TTFT',
  tpot: 'TPOT',
  itl: 'ITL',
  e2e: 'end to end',
  ttft_from_schedule: 'TTFT since the request was due',
  e2e_from_schedule: 'end to end since the request was due',
} as const;
export type ServingMetric = keyof typeof servingMetrics;

export const shownPercentiles = ['p50', 'p95', 'p99'] as const;
const isMetric = (part: string): part is ServingMetric => part in servingMetrics;

/** Bound of the SLO on a metric, ms. */
export function sloBound({ slo }: ServingResult, metric: ServingMetric): number | null {
  if (!slo) return null;
  if (metric.startsWith('ttft')) return slo.ttft_ms;
  if (metric.startsWith('e2e')) return slo.e2e_ms;
  return metric === 'tpot' ? slo.tpot_ms : null;
}

/** Percentiles of one metric against the load, the SLO's bound dashed. */
export const servingLatencyChart: Chart<ServingResult> = {
  height: () => 280,
  build: (input) => {
    const metric: ServingMetric = isMetric(input.part) ? input.part : 'ttft';
    const points = byLoad(input.result);
    const bound = sloBound(input.result, metric);
    const lines = shownPercentiles.map((percentile, index): Line => ({
      ...markOf(index),
      name: percentile,
      values: points.map(({ latency, client }) => {
        const spread = latency[metric];
        if ('value' in spread) return null;
        return {
          value: spread[percentile],
          notes: [
            `mean ${formatMs(spread.mean)}, n = ${spread.n}`,
            ...(client.bound ? ['client-bound: the client was too slow for this load'] : []),
          ],
        };
      }),
    }));
    const top = Math.max(...lines.flatMap(({ values }) => values.map((one) => one?.value ?? 0)), 0);
    // A bound far above everything measured would press the lines to the floor; the table has it.
    const shown = bound !== null && bound < 4 * top;
    return linesOption(input, {
      categories: points.map(levelLabel),
      xName: levelName(points),
      unit: 'ms',
      lines,
      bounds: shown ? [{ value: bound, name: `SLO ${formatMs(bound)}` }] : [],
    });
  },
};
