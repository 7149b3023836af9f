import type { KernelResult, KernelsResult } from '../../../model/documents/kernels.js';
import { cellsOf } from '../../../views/kernels-series.js';
import { caseLabel, outcomeLabels } from '../../../vocabulary/kernel-cases.js';
import { formatPercent, formatQuantity } from '../../../vocabulary/format.js';
import { base, isNarrow, type Chart } from '../chart.js';
import { heatMapHeight, heatMapOption } from '../heat-map.js';

/** Shares of the roof where it is known, else the logarithm of time from the shortest to the longest. */
function shadeOf(cells: ReturnType<typeof cellsOf>): (one: KernelResult) => number | null {
  if (cells.every(({ one }) => one.median_ns === null || one.roof_share.value !== null))
    return ({ roof_share: share }) => (share.value === null ? null : Math.min(1, share.value));
  const logs = cells.flatMap(({ one }) => (one.median_ns === null ? [] : [Math.log(one.median_ns)]));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  return ({ median_ns: ns }) =>
    ns === null ? null : high > low ? 1 - (Math.log(ns) - low) / (high - low) : 1;
}

/** Medians over two swept sizes; the darker, the closer to the roof. `part` is the number of the map. */
export const kernelMapChart: Chart<KernelsResult> = {
  height: ({ maps }, part) => heatMapHeight(maps[Number(part)]?.y.values.length ?? 1),
  build: (input) => {
    const { result, part, width } = input;
    const map = result.maps[Number(part)];
    if (!map) return base(input);
    const cells = cellsOf(result, map);
    const shade = shadeOf(cells);
    return heatMapOption(input, {
      x: map.x,
      y: map.y,
      cells: cells.map(({ x, y, one }) => ({
        x,
        y,
        shade: shade(one),
        text: textOf(one, isNarrow(width)),
        tip: [caseLabel(one, true), textOf(one, false)],
      })),
    });
  },
};

function textOf({ median_ns: ns, roof_share: share, outcome }: KernelResult, narrow: boolean): string {
  if (ns === null) return outcomeLabels[outcome];
  const time = formatQuantity(ns, 'ns');
  return narrow || share.value === null ? time : `${time}\n${formatPercent(share.value)} of roof`;
}
