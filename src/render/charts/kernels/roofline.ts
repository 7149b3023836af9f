import type { KernelResult, KernelsResult } from '../../../model/documents/kernels.js';
import { placed } from '../../../views/kernels-series.js';
import { caseLabel } from '../../../vocabulary/kernel-cases.js';
import { formatNumber, formatPercent, formatQuantity, nbsp } from '../../../vocabulary/format.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import { classColors } from '../../palette.js';
import { base, type Chart } from '../chart.js';
import { type PlotRoofs, rooflineOption } from '../roofline-plot.js';

function roofsOf({ roofs }: KernelsResult): PlotRoofs {
  const { value: bandwidth } = roofs.bytes_per_s;
  return {
    slopes:
      bandwidth === null
        ? []
        : [{ text: formatQuantity(bandwidth, 'B/s'), bytes_per_s: bandwidth, side: 'left' }],
    peaks: roofs.compute.flatMap(({ dtype, flops_per_s: peak }) =>
      peak.value === null ? [] : [{ dtype, flops_per_s: peak.value }],
    ),
    ridge: null,
  };
}

/** A point a case in the colour of its class. */
export const kernelRooflineChart: Chart<KernelsResult> = {
  height: () => 420,
  key: (result) =>
    [...new Set(placed(result).map((one) => one.class))].map((one) => ({
      name: classLabels[one],
      color: classColors[one],
    })),
  build: (input) => {
    const cases = placed(input.result);
    if (cases.length === 0) return base(input);
    const roofs = roofsOf(input.result);
    const points = cases.map((one) => ({
      intensity: one.intensity!,
      flops_per_s: one.flops_per_s!,
      color: classColors[one.class],
      symbol: 'circle',
      size: 11,
      label: null,
      tip: [caseLabel(one, true), ...notesOf(one)],
    }));
    const ridges = roofs.slopes.flatMap((slope) =>
      roofs.peaks.map((peak) => (3 * peak.flops_per_s) / slope.bytes_per_s),
    );
    return rooflineOption(input, roofs, points, [...ridges, 1]);
  },
};

function notesOf(one: KernelResult): string[] {
  return [
    `${classLabels[one.class]}: ${formatQuantity(one.median_ns!, 'ns')}`,
    `${formatQuantity(one.flops_per_s!, 'FLOP/s')} at ${formatNumber(one.intensity!)}${nbsp}FLOP/byte`,
    one.roof_share.value === null ? '' : `${formatPercent(one.roof_share.value)} of the roof`,
  ].filter((note) => note !== '');
}
