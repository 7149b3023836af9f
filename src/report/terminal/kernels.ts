import type { Document } from '../../model/document.js';
import type { KernelResult, KernelStep, KernelsResult } from '../../model/documents/kernels.js';
import {
  formatCount,
  formatFigure,
  formatNumber,
  formatPercent,
  formatQuantity,
  noValue,
} from '../format.js';
import {
  caseLabel,
  deviceWords,
  intervalShare,
  outcomeWords,
  protocolWords,
  roofWords,
  stepLabel,
} from '../kernel-words.js';
import { collapsed } from '../notices.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });
/** More belong into the report and the files. */
const casesShown = 40;

/** What each operation took and reached; of a model what its steps add up to. At most 110 columns, readable without colour. */
export function kernelsText(
  { data, issues, tool_version }: Document<KernelsResult>,
  columns: number,
): string {
  const width = readingWidth(columns);
  const lines = [
    ...hanging('', `inferscope ${tool_version} · ${inert(data.session.title)}`, width),
    ...hanging('  ', `${inert(deviceWords(data))} · ${protocolWords(data)}`, width),
    ...hanging('  roofs: ', roofWords(data), width),
    '',
    // Of a model the sums are what was asked for; its operations stand in them.
    ...(data.steps.length > 0 ? stepLines(data, width) : caseLines(data, width)),
  ];
  lines.push(...behindLines(data, width), ...notMeasured(data, width));
  const said = collapsed(issues).flatMap(({ severity, text }) =>
    hanging(
      severity === 'error'
        ? `  ${colour.red('error:')} `
        : `  ${severity === 'warning' ? colour.yellow('warning:') : 'note:'} `,
      inert(text),
      width,
    ),
  );
  if (said.length > 0) lines.push('', ...said);
  return withPlainSpaces(lines.join('\n'));
}

function caseLines(data: KernelsResult, width: number): string[] {
  const more = data.cases.length - casesShown;
  const rest = more > 0 ? [`  … and ${formatCount(more)} more in the report and the files`] : [];
  return [caseTable(data, width), '', spreadTable(data, width), ...rest];
}

function caseTable({ cases }: KernelsResult, width: number): string {
  const shown = cases.filter(({ runs }) => runs > 0).slice(0, casesShown);
  const several = new Set(cases.map(({ dtype }) => dtype)).size > 1;
  return textTable(
    [
      { head: 'operation', flexible: true },
      right('median'),
      right('±'),
      right('reaches'),
      right('of roof'),
      { head: 'bound' },
    ],
    shown.map((one) => [
      `${inert(caseLabel(one, several))}${one.outcome === 'wrong' ? ' (wrong)' : ''}`,
      nsOf(one.median_ns),
      intervalShare(one) ?? noValue,
      reached(one),
      formatFigure(one.roof_share),
      one.bound === 'memory' && one.roof_level !== null
        ? `memory (${inert(one.roof_level)})`
        : (one.bound ?? noValue),
    ]),
    { width },
  );
}

const nsOf = (ns: number | null): string => (ns === null ? noValue : formatQuantity(ns, 'ns'));

/** How the runs of each case are spread; rates and shares are of the median. */
function spreadTable({ cases }: KernelsResult, width: number): string {
  const several = new Set(cases.map(({ dtype }) => dtype)).size > 1;
  return textTable(
    [
      { head: 'time of one', flexible: true },
      right('runs'),
      right('mean'),
      right('sd'),
      right('min'),
      right('max'),
    ],
    cases
      .filter(({ runs }) => runs > 0)
      .slice(0, casesShown)
      .map((one) => [
        inert(caseLabel(one, several)),
        formatCount(one.runs),
        formatFigure(one.mean_ns),
        nsOf(one.sd_ns),
        nsOf(one.min_ns),
        nsOf(one.max_ns),
      ]),
    { width },
  );
}

/** Names of kernels are long, too: the two share a line. */
const labelWidth = 26;
const shortened = (label: string) =>
  label.length <= labelWidth ? label : `${label.slice(0, labelWidth - 1)}…`;

/** What a run of each traced case is made of, on the device where there is one: the three longest parts of it. */
function behindLines({ cases }: KernelsResult, width: number): string[] {
  const traced = cases.flatMap(({ behind, ...one }) => (behind?.length ? [{ one, behind }] : []));
  if (traced.length === 0) return [];
  const rows = traced.slice(0, casesShown).flatMap(({ one, behind }) => {
    const kernels = behind.filter(({ what }) => what === 'kernel');
    const shown = (kernels.length > 0 ? kernels : behind).slice(0, 3);
    return shown.map(({ name, count, ns }, index) => [
      index === 0 ? shortened(inert(caseLabel(one, true))) : '',
      inert(name),
      formatNumber(count, 1),
      formatQuantity(ns, 'ns'),
    ]);
  });
  return [
    '',
    `  ${colour.bold('Behind each, in one run under the profiler')}`,
    textTable(
      [{ head: 'operation' }, { head: 'kernel or operator', flexible: true }, right('times'), right('time')],
      rows,
      { width },
    ),
  ];
}

/** The rate that its roof is of; the files have both. */
function reached({ bound, flops_per_s: computes, bytes_per_s: moves, class: of }: KernelResult): string {
  const product =
    bound === null || bound === 'latency' ? of === 'gemm' || of === 'attention' : bound === 'compute';
  if (product && computes !== null) return formatQuantity(computes, 'FLOP/s');
  return moves === null ? noValue : formatQuantity(moves, 'B/s');
}

/** Cases without a figure, by reason. */
function notMeasured({ cases }: KernelsResult, width: number): string[] {
  const reasons = new Map<string, KernelResult[]>();
  for (const one of cases) {
    if (one.runs > 0) continue;
    const why = `${outcomeWords(one)}${one.text === null ? '' : `: ${one.text}`}`;
    reasons.set(why, [...(reasons.get(why) ?? []), one]);
  }
  return [...reasons].flatMap(([why, own]) => {
    const names = own.slice(0, 3).map((one) => caseLabel(one, true));
    const more = own.length > 3 ? ` and ${own.length - 3} more` : '';
    return hanging('  ', `${inert(names.join('; '))}${more}: ${inert(why)}`, width);
  });
}

function stepLines({ steps, model }: KernelsResult, width: number): string[] {
  const rows = steps.map((step) => [
    stepLabel(step),
    formatFigure(step.measured_ns),
    formatFigure(step.roof_ns),
    step.measured_ns.value !== null && step.roof_ns.value !== null
      ? formatPercent(step.roof_ns.value / step.measured_ns.value)
      : noValue,
    `${formatCount(step.measured_ops)}/${formatCount(step.measured_ops + step.missing_ops)}`,
  ]);
  const lines = [
    `  ${colour.bold(`A step of ${inert(model?.name ?? 'the model')}: its operations one after another`)}`,
    textTable(
      [
        { head: 'step', flexible: true },
        right('measured'),
        right('roof'),
        right('of roof'),
        right('operations'),
      ],
      rows,
      {
        width,
      },
    ),
  ];
  const first = steps.find(({ phase }) => phase === 'decode');
  if (first) lines.push('', `  ${colour.bold(stepLabel(first))}`, opTable(first, width));
  const reasons = new Set(
    steps.flatMap(({ ops }) =>
      ops.flatMap(({ name, reason }) => (reason === null ? [] : [`${name}: ${reason}`])),
    ),
  );
  for (const reason of reasons) lines.push(...hanging('  not measured: ', inert(reason), width));
  return lines;
}

function opTable({ ops, measured_ns: whole }: KernelStep, width: number): string {
  const sorted = ops
    .filter(({ total_ns }) => total_ns !== null)
    .toSorted((a, b) => b.total_ns! - a.total_ns!);
  return textTable(
    [
      { head: 'operation', flexible: true },
      right('times'),
      right('each'),
      right('together'),
      right('share'),
      right('of roof'),
    ],
    sorted.map(({ name, count, total_ns: total, roof_ns: roof }) => [
      inert(name),
      formatCount(count),
      formatQuantity(total! / count, 'ns'),
      formatQuantity(total!, 'ns'),
      whole.value === null ? noValue : formatPercent(total! / whole.value),
      roof === null ? noValue : formatPercent(roof / total!),
    ]),
    { width },
  );
}
