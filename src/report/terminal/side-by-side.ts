import type { Document } from '../../model/document.js';
import type {
  BenchCompare,
  ComparedMetric,
  ComparedSide,
  CompareVerdict,
} from '../../model/documents/bench-compare.js';
import { formatPercent, formatQuantity, noValue } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

const verdictWords: Record<CompareVerdict, string> = {
  worse: 'WORSE',
  better: 'better',
  no_real_difference: 'not real',
  within_process: 'no claim',
  no_spread: 'no claim',
  missing: 'one side',
};

/** `bench compare`: the finding first, then every metric; at most 100 columns, nothing lost without colour. */
export function benchCompareText({ data, tool_version }: Document<BenchCompare>, columns: number): string {
  const width = readingWidth(columns);
  const mark = {
    failed: colour.red,
    passed: colour.green,
    undecided: colour.yellow,
    no_gate: (text: string) => text,
  }[data.result];
  const lines = [
    `inferscope ${tool_version} · bench compare · ${sideWords(data.base)} → ${sideWords(data.now)}`,
    '',
    ...hanging('  ', inert(data.headline), width).map((line) => mark(line)),
    '',
    ...metricTables(data.comparisons, width).slice(1),
    '',
    ...notes(data).flatMap((note) => hanging('  ', inert(note), width)),
  ];
  if (data.differences.length > 0)
    lines.push('', `  ${colour.bold('What else differs')}`, differenceTable(data, width));
  return withPlainSpaces(lines.join('\n').replace(/\n+$/, ''));
}

function sideWords({ selector, baseline, variant, sessions }: ComparedSide): string {
  if (baseline !== null) return `baseline ${inert(baseline)}`;
  const named = sessions.map(({ id, name }) => inert(name ?? id)).join(', ') || inert(selector);
  return variant === null ? named : `${named}:${inert(variant)}`;
}

const shown = (value: number | null, unit: string): string =>
  value === null ? noValue : formatQuantity(value, unit);
const signed = (share: number): string => `${share > 0 ? '+' : ''}${formatPercent(share)}`;

/** A table a point, so that names stay whole in narrow terminals. */
function metricTables(comparisons: readonly ComparedMetric[], width: number): string[] {
  const points = [...new Set(comparisons.map(({ point }) => point))];
  return points.flatMap((point) => [
    '',
    ...(point === null ? [] : [`  ${colour.bold(inert(point))}`]),
    metricTable(
      comparisons.filter((one) => one.point === point),
      new Set(comparisons.map(({ n }) => n.join())).size === 1,
      width,
    ),
  ]);
}

function metricTable(comparisons: readonly ComparedMetric[], uniform: boolean, width: number): string {
  const rows = comparisons.map(({ name, unit, base, now, change, change_ci95, p_adjusted, n, verdict }) => [
    inert(name.replace(/_(?:ms|tokens_per_s|bytes)$/, '').replaceAll('_', ' ')),
    shown(base, unit),
    shown(now, unit),
    change === null ? noValue : signed(change),
    change_ci95 === null ? noValue : `${signed(change_ci95[0])} to ${signed(change_ci95[1])}`,
    p_adjusted === null ? noValue : p_adjusted < 0.001 ? '<.001' : p_adjusted.toFixed(3).slice(-5),
    ...(uniform ? [] : [`${n[0]}, ${n[1]}`]),
    verdict === 'worse' ? colour.red(verdictWords[verdict]) : verdictWords[verdict],
  ]);
  return textTable(
    [
      { head: '', flexible: true },
      right('base'),
      right('new'),
      right('change'),
      right('95 %'),
      right('p'),
      ...(uniform ? [] : [right('n')]),
      { head: '' },
    ],
    rows,
    { width },
  );
}

function notes({ comparisons, power, within_process, gates }: BenchCompare): string[] {
  const by = (method: ComparedMetric['method']) => comparisons.some((one) => one.method === method);
  const tested = comparisons.filter(({ method }) => method !== null).length;
  const sizes = [...new Set(comparisons.map(({ n }) => n.join(' and ')))];
  const unit = comparisons.some(({ basis }) => basis === 'repeats') ? 'values' : 'process launches';
  return [
    ...(tested > 0
      ? [
          `Real is what is below p = 0.05 after Holm's correction for ${tested} metric${tested === 1 ? '' : 's'}${gates.length > 0 ? ' (those of --fail-on among themselves)' : ''}${by('mann_whitney') ? ', by Mann and Whitney’s rank test; change and interval are Hodges and Lehmann’s' : ''}.${sizes.length === 1 ? ` Behind each side: ${sizes[0]} ${unit}.` : ''}`,
        ]
      : []),
    ...power,
    ...(comparisons.some(({ verdict }) => verdict === 'within_process' || verdict === 'no_spread')
      ? [
          'no claim: the spread between launches is not known on both sides. Measure with more --launches; --within-process takes the repeats of one process instead.',
        ]
      : []),
    ...(within_process ? ['Repeats of one process were taken as independent (--within-process).'] : []),
  ];
}

function differenceTable({ differences }: BenchCompare, width: number): string {
  const rows = differences.map(({ label, baseline, current }) => [
    inert(label),
    inert(baseline ?? noValue),
    inert(current ?? noValue),
  ]);
  return textTable([{ head: '' }, { head: 'base' }, { head: 'new', flexible: true }], rows, { width });
}
