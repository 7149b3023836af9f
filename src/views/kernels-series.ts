import type { KernelMap, KernelResult, KernelsResult } from '../model/documents/kernels.js';
import { classColors } from '../vocabulary/colors.js';
import { caseLabel, caseOutcomeLabels } from '../vocabulary/kernel-cases.js';
import { classLabels } from '../vocabulary/op-classes.js';
import type { HeatChart, RooflineChart } from './chart.js';
import { linkTo, type Places, pointPlace } from './findings.js';
import type { Text } from './text.js';

/** Measured cases with FLOP: others have no place on a logarithmic axis. */
export function casesWithFlops({ cases }: KernelsResult): KernelResult[] {
  return cases.filter(({ intensity, flops_per_s: rate }) => intensity !== null && rate !== null);
}

/** Cells of a sweep that have a case; x and y are indices of the swept values. */
export function cellsOf(
  { cases }: KernelsResult,
  { cells }: KernelMap,
): { x: number; y: number; result: KernelResult }[] {
  const byId = new Map(cases.map((result) => [result.case, result]));
  return cells.flatMap(({ x, y, case: id }) => {
    const result = byId.get(id);
    return result ? [{ x, y, result }] : [];
  });
}

const roofShare = ({ roof_share: share }: KernelResult): Text[] =>
  share.value === null ? [] : [[{ n: share.value, unit: 'ratio' }, ' of roof']];

/** One point per case in the color of its class. */
export function rooflineChart(data: KernelsResult, places?: Places): RooflineChart {
  const { bytes_per_s: bandwidth, compute } = data.roofs;
  return {
    form: 'roofline',
    slopes: bandwidth.value === null ? [] : [{ name: '', bytes_per_s: bandwidth.value }],
    peaks: compute.flatMap(({ dtype, flops_per_s: peak }) =>
      peak.value === null ? [] : [{ dtype, flops_per_s: peak.value }],
    ),
    ridge: null,
    points: casesWithFlops(data).map((result) => ({
      name: caseLabel(result, true),
      ...linkTo(places?.get(pointPlace(result.case))),
      group: classLabels[result.class],
      color: classColors[result.class],
      symbol: 'circle',
      intensity: result.intensity!,
      flops_per_s: result.flops_per_s!,
      notes: [[`${classLabels[result.class]}: `, { n: result.median_ns!, unit: 'ns' }], ...roofShare(result)],
    })),
  };
}

/** Shade by share of the roofline if known, else by the logarithm of time between the shortest and longest. */
function shadeOf(cells: ReturnType<typeof cellsOf>): (result: KernelResult) => number | null {
  if (cells.every(({ result }) => result.median_ns === null || result.roof_share.value !== null))
    return ({ roof_share: share }) => (share.value === null ? null : Math.min(1, share.value));
  const logs = cells.flatMap(({ result }) => (result.median_ns === null ? [] : [Math.log(result.median_ns)]));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  return ({ median_ns: ns }) =>
    ns === null ? null : high > low ? 1 - (Math.log(ns) - low) / (high - low) : 1;
}

/** Medians over two swept sizes; a stronger color is closer to the roofline, or faster if the roofline is unknown. */
export function mapChart(data: KernelsResult, map: KernelMap): HeatChart {
  const cells = cellsOf(data, map);
  const shade = shadeOf(cells);
  return {
    form: 'heat',
    x: map.x,
    y: map.y,
    cells: cells.map(({ x, y, result }) => ({
      x,
      y,
      shade: shade(result),
      lines:
        result.median_ns === null
          ? [caseOutcomeLabels[result.outcome]]
          : [{ n: result.median_ns, unit: 'ns' }, ...roofShare(result)],
      notes: [caseLabel(result, true)],
    })),
  };
}
