import { noRoof } from './kernels-steps.js';
import { halfInterval } from '../model/half-interval.js';
import type { KernelResult, KernelsResult } from '../model/documents/kernels.js';
import { cutEnd } from '../vocabulary/cut.js';
import { caseLabel, caseOutcomeLabels } from '../vocabulary/kernel-cases.js';
import { classLabels } from '../vocabulary/op-classes.js';
import type { Block, Row, Section, Text } from './block.js';

/** Label of a case, with its dtype if the cases have several. */
export function labelOf({ cases }: Pick<KernelsResult, 'cases'>): (result: KernelResult) => string {
  const several = new Set(cases.map(({ dtype }) => dtype)).size > 1;
  return (result) => caseLabel(result, several);
}

/** All measurements of every case. */
export function caseSections(data: KernelsResult): Section[] {
  const { cases, steps } = data;
  const label = labelOf(data);
  return [
    {
      id: 'cases',
      title: 'Operations',
      // For a model the sums come first.
      level: steps.length > 0 ? 2 : 1,
      blocks: [timeTable(cases, label), workTable(cases, label), spreadTable(cases, label)],
    },
    ...behindSections(cases, label),
    ...notMeasured(cases),
  ];
}

type Label = (result: KernelResult) => string;

const operation = { id: 'operation', head: 'operation', wraps: true };
const ns = (n: number | null): Text => (n === null ? { missing: 'not measured' } : { n, unit: 'ns' });
const rate = (n: number | null, unit: string): Text =>
  n === null ? { missing: 'not measured, or zero' } : { n, unit };

const timeTable = (cases: readonly KernelResult[], label: Label): Block => ({
  type: 'table',
  title: 'Time and roof',
  reasons: true,
  filter: true,
  columns: [
    operation,
    { id: 'class', head: 'class', drop: 0 },
    { id: 'median_ns', head: 'median', numeric: true },
    { id: 'interval_share', head: '±', numeric: true },
    { id: 'rate', head: 'achieved', numeric: true },
    { id: 'roof_share', head: 'of roof', numeric: true },
    { id: 'bound', head: 'bound' },
  ],
  rows: cases.map((result): Row => ({
    level: result.runs > 0 ? 1 : 3,
    cells: [
      result.outcome === 'wrong' ? [label(result), { text: ' (wrong)', tone: 'fault' }] : label(result),
      classLabels[result.class],
      ns(result.median_ns),
      intervalText(result),
      limitingRate(result),
      // The plan above says why roofs are not known.
      result.roof_share.value === null && result.roof_share.reason.code === 'no_roofline'
        ? noRoof
        : { figure: result.roof_share, utilization: true },
      boundText(result),
    ],
  })),
  brief: 12,
});

/** Half of the 95 % interval as a share of the mean. */
function intervalText({ mean_ns: mean }: KernelResult): Text {
  const half = halfInterval(mean);
  return half === null || mean.value === null
    ? { missing: 'too few runs' }
    : { n: half / mean.value, unit: 'ratio' };
}

const boundText = ({ bound: by, roof_level: level }: KernelResult): Text =>
  by === 'memory' && level !== null ? `memory (${level})` : (by ?? noRoof);

/** The rate that limits the case; the table of work has both rates. */
function limitingRate({
  bound: by,
  flops_per_s: computes,
  bytes_per_s: moves,
  class: className,
}: KernelResult): Text {
  const isComputeRate =
    by === null || by === 'latency' ? className === 'gemm' || className === 'attention' : by === 'compute';
  return isComputeRate && computes !== null ? { n: computes, unit: 'FLOP/s' } : rate(moves, 'B/s');
}

const workTable = (cases: readonly KernelResult[], label: Label): Block => ({
  type: 'table',
  level: 2,
  title: 'Work and result',
  filter: true,
  columns: [
    operation,
    { id: 'bytes', head: 'bytes', numeric: true },
    { id: 'flops', head: 'FLOPs', numeric: true },
    { id: 'bytes_per_s', head: 'B/s', numeric: true },
    { id: 'flops_per_s', head: 'FLOP/s', numeric: true },
    { id: 'max_error', head: 'error', numeric: true, drop: 0 },
    { id: 'outcome', head: 'outcome', drop: 1 },
  ],
  rows: cases.map((result) => ({
    cells: [
      label(result),
      { n: result.bytes, unit: 'B' },
      result.flops === 0 ? { missing: 'no FLOPs' } : { n: result.flops, unit: 'FLOP' },
      rate(result.bytes_per_s, 'B/s'),
      rate(result.flops_per_s, 'FLOP/s'),
      result.max_error === null ? { missing: 'not compared' } : { n: result.max_error, unit: '', digits: 2 },
      `${caseOutcomeLabels[result.outcome]}${result.text === null ? '' : `: ${result.text}`}`,
    ],
  })),
});

/** Spread of the runs of each case, and the state of the device. */
const spreadTable = (cases: readonly KernelResult[], label: Label): Block => ({
  type: 'table',
  level: 2,
  title: 'Spread of the runs, and the state of the device',
  columns: [
    { ...operation, head: 'operation' },
    { id: 'runs', head: 'runs', numeric: true },
    { id: 'mean_ns', head: 'mean', numeric: true },
    { id: 'sd_ns', head: 'sd', numeric: true },
    { id: 'min_ns', head: 'min', numeric: true },
    { id: 'p5_ns', head: 'p5', numeric: true, drop: 6 },
    { id: 'p95_ns', head: 'p95', numeric: true, drop: 7 },
    { id: 'max_ns', head: 'max', numeric: true },
    { id: 'method', head: 'timed by', drop: 1 },
    { id: 'peak_memory_bytes', head: 'memory', numeric: true, drop: 2 },
    { id: 'clock_mhz', head: 'clock', numeric: true, drop: 5 },
    { id: 'power_w', head: 'power', numeric: true, drop: 4 },
    { id: 'throttled_by', head: 'throttled by', drop: 3 },
  ],
  rows: cases
    .filter(({ runs }) => runs > 0)
    .map((result) => ({
      cells: [
        label(result),
        { count: result.runs },
        { figure: result.mean_ns },
        ns(result.sd_ns),
        ns(result.min_ns),
        ns(result.p5_ns),
        ns(result.p95_ns),
        ns(result.max_ns),
        `${result.method ?? ''}${(result.per_sample ?? 1) > 1 ? `, ${result.per_sample} batched` : ''}`,
        { figure: result.peak_memory_bytes },
        { figure: result.clock_mhz },
        { figure: result.power_w },
        result.throttled_by.join(', ').replaceAll('_', ' ') || 'nothing',
      ],
    })),
});

/** Maximum characters of a case's label where long kernel names follow on the same line. */
const maxLabel = 26;
/** Maximum parts of a case in a summary. */
const maxParts = 3;

/** Parts of a run of each traced case: kernels if there are any, and the operators on the page. */
function behindSections(cases: readonly KernelResult[], label: Label): Section[] {
  const rows = cases.flatMap((result): Row[] => {
    const { executed } = result;
    if (!executed?.length) return [];
    const kernels = executed.filter(({ what }) => what === 'kernel');
    const shown = new Set((kernels.length > 0 ? kernels : executed).slice(0, maxParts));
    return executed.map((part) => ({
      level: shown.has(part) ? 1 : 3,
      cells: [
        { text: cutEnd(label(result), maxLabel), hint: label(result) },
        part.what,
        part.name,
        part.class === null ? { missing: 'no class' } : classLabels[part.class],
        { n: part.count, unit: '', digits: 1 },
        { n: part.ns, unit: 'ns' },
      ],
    }));
  });
  if (rows.length === 0) return [];
  return [
    {
      id: 'behind',
      title: 'Kernels and operators of each, in one profiled run',
      blocks: [
        {
          type: 'table',
          title: 'Kernels and operators of one run',
          filter: true,
          columns: [
            { id: 'operation', head: 'operation' },
            { id: 'what', head: 'kind', drop: 0 },
            { id: 'name', head: 'kernel or operator', wraps: true },
            { id: 'class', head: 'class', drop: 1 },
            { id: 'times', head: 'count', numeric: true },
            { id: 'time_ns', head: 'time', numeric: true },
          ],
          rows,
          brief: 12,
        },
      ],
    },
  ];
}

/** Cases without a figure, grouped by reason. */
function notMeasured(cases: readonly KernelResult[]): Section[] {
  const reasons = new Map<string, KernelResult[]>();
  for (const result of cases) {
    if (result.runs > 0) continue;
    const why = `${caseOutcomeLabels[result.outcome]}${result.text === null ? '' : `: ${result.text}`}`;
    reasons.set(why, [...(reasons.get(why) ?? []), result]);
  }
  if (reasons.size === 0) return [];
  const items = [...reasons].map(([why, withReason]): Text => {
    const names = withReason.slice(0, 3).map((result) => caseLabel(result, true));
    return `${names.join('; ')}${withReason.length > 3 ? ` and ${withReason.length - 3} more` : ''}: ${why}`;
  });
  return [{ id: 'not-measured', title: 'Not measured', blocks: [{ type: 'notes', items }] }];
}
