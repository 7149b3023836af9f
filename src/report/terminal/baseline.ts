import type { Document } from '../../model/document.js';
import type {
  Baseline,
  BaselineCheck,
  BaselineComparison,
  BaselineVerdict,
} from '../../model/documents/baseline.js';
import { formatCount, formatPercent, formatQuantity, noValue } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

const verdictWords: Record<BaselineVerdict, string> = {
  regression: 'REGRESSION',
  improvement: 'better',
  within_tolerance: 'tolerated',
  unchanged: 'unchanged',
  no_worse: 'no worse',
  inconclusive: 'open',
  within_process: 'no claim',
  no_spread: 'no claim',
  missing: 'missing',
};

const shown = (value: number | null, unit: string): string =>
  value === null ? noValue : formatQuantity(value, unit);

/** `baseline set`: what is kept, and how much of it can carry a claim. */
export function baselineText(baseline: Baseline, path: string, columns: number): string {
  const width = readingWidth(columns);
  const bases = {
    launches: 'launches',
    repeats: 'repeats, one process',
    interval: 'interval',
    none: 'one value',
  };
  const rows = baseline.metrics.map(({ id, value, unit, basis, values, interval }) => [
    inert(id),
    shown(value, unit),
    formatCount(interval?.n ?? Math.max(1, values.length)),
    interval?.over_launches ? bases.launches : bases[basis],
  ]);
  const sure = baseline.metrics.filter(
    ({ basis, interval }) => basis === 'launches' || interval?.over_launches === true,
  ).length;
  const lines = [
    `  Baseline ${inert(baseline.name)} from ${baseline.sessions.map(({ id, name }) => inert(name ?? id)).join(', ')}`,
    '',
    textTable(
      [{ head: 'metric', flexible: true }, right('value'), right('n'), { head: 'spread over' }],
      rows,
      {
        width,
      },
    ),
    '',
  ];
  if (sure < baseline.metrics.length) {
    const text = `${formatCount(baseline.metrics.length - sure)} of ${formatCount(baseline.metrics.length)} metrics have no spread between launches: no change of them will be called real. Set it from several runs: inferscope baseline set RUN1 RUN2 RUN3`;
    lines.push(...hanging('  ', text, width));
  }
  lines.push(`  ${inert(path)}`);
  return withPlainSpaces(lines.join('\n'));
}

/** `baseline check`: the finding first, then every metric; at most 80 columns, nothing lost without colour. */
export function baselineCheckSummary(
  { data, tool_version }: Document<BaselineCheck>,
  columns: number,
): string {
  const width = readingWidth(columns);
  const { baseline, sessions } = data;
  const mark = { regression: colour.red, passed: colour.green, undecided: colour.yellow }[data.result];
  const named = sessions.map(({ id, name }) => inert(name ?? id)).join(', ');
  const lines = [
    `inferscope ${tool_version} · baseline check · ${inert(baseline.name)} (${baseline.set_at.slice(0, 10)}) → ${named}`,
    '',
    ...hanging('  ', inert(data.headline), width).map((line) => mark(line)),
    '',
    metricTable(data.comparisons, width),
  ];
  const said = data.comparisons.filter(
    ({ verdict }) => verdict === 'regression' || verdict === 'inconclusive' || verdict === 'improvement',
  );
  if (said.length > 0) {
    lines.push('', ...said.flatMap(({ id, text }) => hanging(`  ${inert(id)}: `, text, width)));
  }
  lines.push('', ...notes(data).flatMap((note) => hanging('  ', note, width)));
  const differing = differenceTable(data, width);
  if (differing !== '') lines.push('', `  ${colour.bold('What else differs')}`, differing);
  return withPlainSpaces(lines.join('\n').replace(/\n+$/, ''));
}

function metricTable(comparisons: readonly BaselineComparison[], width: number): string {
  const uniform = new Set(comparisons.map(({ n }) => n.join())).size === 1;
  const rows = comparisons.map(({ id, unit, baseline, current, change, change_ci95, n, verdict }) => [
    inert(id),
    shown(baseline, unit),
    shown(current, unit),
    change === null ? noValue : signed(change),
    change_ci95 === null ? noValue : `${signed(change_ci95[0])} to ${signed(change_ci95[1])}`,
    ...(uniform ? [] : [`${n[0]}, ${n[1]}`]),
    verdict === 'regression' ? colour.red(verdictWords[verdict]) : verdictWords[verdict],
  ]);
  return textTable(
    [
      { head: 'metric', flexible: true },
      right('baseline'),
      right('now'),
      right('change'),
      right('95 %'),
      ...(uniform ? [] : [right('n')]),
      { head: '' },
    ],
    rows,
    { width },
  );
}

const signed = (share: number): string => `${share > 0 ? '+' : ''}${formatPercent(share)}`;

function notes({ comparisons, tolerance, within_process }: BaselineCheck): string[] {
  const sizes = [...new Set(comparisons.map(({ n }) => n.join(' and ')))];
  const has = (verdict: BaselineVerdict) => comparisons.some((one) => one.verdict === verdict);
  return [
    `A change is called real when Welch's test on the logarithms says so after Holm's correction for ${comparisons.filter(({ p_adjusted }) => p_adjusted !== null).length} metrics; worse by up to ${formatPercent(tolerance)} is tolerated.${sizes.length === 1 ? ` Values behind each side: ${sizes[0]}.` : ''}`,
    ...(has('within_process') || has('no_spread')
      ? [
          'no claim: the spread between launches is not known on both sides. Give several sessions to set and check, or profile with more --launches.',
        ]
      : []),
    ...(within_process ? ['Repeats of one process were taken as independent (--within-process).'] : []),
  ];
}

function differenceTable({ differences }: BaselineCheck, width: number): string {
  if (differences.length === 0) return '';
  const rows = differences.map(({ label, baseline, current }) => [
    inert(label),
    inert(baseline ?? noValue),
    inert(current ?? noValue),
  ]);
  return textTable([{ head: '' }, { head: 'baseline' }, { head: 'now', flexible: true }], rows, { width });
}
