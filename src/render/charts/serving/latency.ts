import type { ServingResult } from '../../../model/documents/serving.js';
import { byLoad, drawnPercentiles, sloBound } from '../../../views/serving-series.js';
import { latencyLabels, type LatencyId, loadLabel } from '../../../vocabulary/loads.js';
import { formatMs } from '../../../vocabulary/format.js';
import type { Chart } from '../chart.js';
import { type Line, lineKey, linesOption, markOf } from '../lines.js';
import { loadAxis } from './axis.js';

const isLatency = (part: string): part is LatencyId => part in latencyLabels;

/** Percentiles of one latency against the load, the SLO's bound dashed. */
export const servingLatencyChart: Chart<ServingResult> = {
  height: () => 280,
  key: () => lineKey(drawnPercentiles),
  build: (input) => {
    const metric: LatencyId = isLatency(input.part) ? input.part : 'ttft';
    const points = byLoad(input.result);
    const bound = sloBound(input.result, metric);
    const lines = drawnPercentiles.map((percentile, index): Line => ({
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
      categories: points.map(({ load }) => loadLabel(load)),
      xName: loadAxis(points),
      unit: 'ms',
      lines,
      bounds: shown ? [{ value: bound, name: `SLO ${formatMs(bound)}` }] : [],
    });
  },
};
