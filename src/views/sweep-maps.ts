import type { SweepResult, SweepRun, SweepValue } from '../model/documents/sweep.js';
import { figureLabel, figureQuantity, runOutcomeLabels, parameterLabel } from '../vocabulary/sweep.js';
import type { HeatChart } from './chart.js';
import { shownFiguresOf } from './sweep-columns.js';

interface SweepMapCell {
  x: number;
  y: number;
  run: SweepRun;
  /** Null if the run has no such figure. */
  value: number | null;
}

/** One figure over two of the varied parameters; each value of a third one has its own map. */
export interface SweepMap {
  figure: string;
  /** Values of the other varied parameters; empty without any. */
  fixed: string;
  x: { name: string; values: string[] };
  y: { name: string; values: string[] };
  cells: SweepMapCell[];
}

interface Axis {
  name: string;
  value: (run: SweepRun) => string;
  /** Sort key of the values; texts keep the order of the plan. */
  size: (run: SweepRun) => number;
  parameters: string[];
}

/** Maximum maps on a page; the table has all runs. */
const maxMaps = 12;

/** Peak memory and latency over batch and context; for other commands the first figures over the first two axes. */
export function sweepMaps(sweep: SweepResult): SweepMap[] {
  const axes = sweep.kind === 'memory' ? memoryAxes : gridAxes(sweep);
  if (!axes) return [];
  const [x, y] = axes;
  const axisParameters = new Set([...x.parameters, ...y.parameters]);
  if (!sweep.varied.some((name) => axisParameters.has(name))) return [];
  const otherParameters = sweep.varied.filter((name) => !axisParameters.has(name));
  const groups = new Map<string, SweepRun[]>();
  for (const run of sweep.runs) {
    const fixed = otherParameters
      .map((name) => `${parameterLabel(name)} ${valueText(run.parameters[name])}`)
      .join(', ');
    groups.set(fixed, [...(groups.get(fixed) ?? []), run]);
  }
  const figures =
    sweep.kind === 'memory'
      ? ['peak_gb', 'mean_latency_ms', 'tokens_per_second']
      : shownFiguresOf(sweep).slice(0, 3);
  return [...groups]
    .flatMap(([fixed, runs]) => figures.map((figure) => mapOf(figure, fixed, runs, x, y)))
    .filter(({ cells }) => cells.some(({ value }) => value !== null))
    .slice(0, maxMaps);
}

function mapOf(figure: string, fixed: string, runs: readonly SweepRun[], x: Axis, y: Axis): SweepMap {
  const [across, up] = [valuesOf(runs, x), valuesOf(runs, y)];
  return {
    figure,
    fixed,
    x: { name: x.name, values: across },
    y: { name: y.name, values: up },
    cells: runs.map((run) => ({
      x: across.indexOf(x.value(run)),
      y: up.indexOf(y.value(run)),
      run,
      value: run.figures.length === 1 ? (run.figures[0]!.values[figure] ?? null) : null,
    })),
  };
}

function valuesOf(runs: readonly SweepRun[], { value, size }: Axis): string[] {
  const sorted = runs.toSorted((a, b) => size(a) - size(b));
  return [...new Set(sorted.map(value))];
}

const valueText = (value: SweepValue | undefined): string => String(value ?? 'not set');

const numberOf = (value: SweepValue | undefined): number => (typeof value === 'number' ? value : 0);

const memoryAxes: [Axis, Axis] = [
  {
    name: 'context: prompt → output tokens',
    value: ({ parameters: p }) => `${numberOf(p['input_length'])} in + ${numberOf(p['output_length'])} out`,
    size: ({ parameters: p }) => numberOf(p['input_length']) + numberOf(p['output_length']),
    parameters: ['input_length', 'output_length'],
  },
  {
    name: 'batch',
    value: ({ parameters: p }) => String(numberOf(p['batch_size'])),
    size: ({ parameters: p }) => numberOf(p['batch_size']),
    parameters: ['batch_size'],
  },
];

function gridAxes({ varied }: SweepResult): [Axis, Axis] | null {
  const axis = (name: string): Axis => ({
    name: parameterLabel(name),
    value: ({ parameters }) => valueText(parameters[name]),
    size: ({ parameters }) => numberOf(parameters[name]),
    parameters: [name],
  });
  const [first, second] = varied;
  return first === undefined || second === undefined ? null : [axis(first), axis(second)];
}

/** A stronger color is more, relative to the map's own values; logarithmic if they span more than a factor of ten. */
function shadeOf({ cells }: SweepMap): (value: number | null) => number | null {
  const values = cells.flatMap(({ value }) => (value === null ? [] : [value]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const scale = low > 0 && high / low > 10 ? Math.log : (value: number) => value;
  return (value) =>
    value === null ? null : high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5;
}

export function mapChart(map: SweepMap): HeatChart {
  const shade = shadeOf(map);
  return {
    form: 'heat',
    x: map.x,
    y: map.y,
    cells: map.cells.map(({ x, y, run, value }) => ({
      x,
      y,
      shade: shade(value),
      lines: [value === null ? runOutcomeLabels[run.outcome] : figureQuantity(map.figure, value)],
      notes: [run.label, figureLabel(map.figure), ...(run.failure ? [run.failure.what] : [])],
    })),
  };
}
