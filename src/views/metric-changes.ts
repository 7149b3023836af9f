import type { BaselineVerdict } from '../model/documents/baseline.js';
import type { CompareVerdict } from '../model/documents/bench-compare.js';
import { plural } from '../vocabulary/format.js';
import { verdictLabels } from '../vocabulary/verdicts.js';
import type { Block, Table, Text } from './block.js';

/** A metric of two sides and its verdict. */
interface MetricChange {
  name: string;
  unit: string;
  base: number | null;
  now: number | null;
  change: number | null;
  change_ci95: readonly [number, number] | null;
  p_adjusted: number | null;
  n: readonly [number, number];
  verdict: CompareVerdict | BaselineVerdict;
}

const faultVerdicts: ReadonlySet<MetricChange['verdict']> = new Set(['worse', 'regression']);
const oneSided = 'missing on one side';

const quantity = (n: number | null, unit: string): Text => (n === null ? { missing: oneSided } : { n, unit });

/** One row per metric: both values, the change with its interval, and the verdict, with a column `n` if n differs between metrics. */
export function metricTable(
  metrics: readonly MetricChange[],
  {
    title,
    uniform,
    base = 'base',
    now = 'new',
  }: { title: string; uniform: boolean; base?: string; now?: string },
): Table {
  const whyNot = ({ base: from, now: to }: MetricChange, otherwise: string) => ({
    missing: from === null || to === null ? oneSided : otherwise,
  });
  const noTest = (metric: MetricChange) =>
    whyNot(
      metric,
      metric.verdict === 'within_process'
        ? 'the values of a side are from one process'
        : isSpreadUnknown(metric)
          ? 'the spread of a side is unknown'
          : 'a value is 0',
    );
  return {
    type: 'table',
    title,
    reasons: true,
    columns: [
      { id: 'metric', head: 'metric', wraps: 18, lines: true },
      { id: 'base', head: base, numeric: true },
      { id: 'new', head: now, numeric: true },
      { id: 'change', head: 'change', numeric: true },
      { id: 'change_ci95', head: '95 %', numeric: true, drop: 2 },
      { id: 'p', head: 'p', numeric: true, drop: 0 },
      ...(uniform ? [] : [{ id: 'n', head: 'n', numeric: true, drop: 1 }]),
      { id: 'verdict', head: 'verdict' },
    ],
    rows: metrics.map((metric) => ({
      // Tools have dozens of metrics of their own: oneSidedNote counts them.
      level: metric.verdict === 'missing' ? 3 : 1,
      cells: [
        metric.name,
        quantity(metric.base, metric.unit),
        quantity(metric.now, metric.unit),
        metric.change === null
          ? whyNot(metric, 'no ratio to 0')
          : { n: metric.change, unit: 'ratio', signed: true },
        metric.change_ci95 === null
          ? metric.p_adjusted === null
            ? noTest(metric)
            : { missing: 'too few values for an interval' }
          : interval(metric.change_ci95),
        metric.p_adjusted === null ? noTest(metric) : { n: metric.p_adjusted, unit: '', digits: 2 },
        ...(uniform ? [] : [`${metric.n[0]}, ${metric.n[1]}`]),
        faultVerdicts.has(metric.verdict)
          ? ({ text: verdictLabels[metric.verdict], tone: 'fault' } as const)
          : verdictLabels[metric.verdict],
      ],
    })),
  };
}

const interval = ([low, high]: readonly [number, number]): Text => [
  { n: low, unit: 'ratio', signed: true },
  ' to ',
  { n: high, unit: 'ratio', signed: true },
];

/** Names of one-sided metrics that a note lists. */
const namesInNote = 4;

/** The metrics that only one side has, which the text does not list in rows. */
export function oneSidedNote(
  metrics: readonly Pick<MetricChange, 'name' | 'verdict' | 'base'>[],
  { base = 'base', now = 'new' }: { base?: string; now?: string } = {},
): string[] {
  return [base, now].flatMap((side, index) => {
    const names = metrics
      .filter(({ verdict, base: value }) => verdict === 'missing' && (value === null) === (index === 1))
      .map(({ name }) => name);
    if (names.length === 0) return [];
    const more = names.length - namesInNote;
    const shown = names.slice(0, namesInNote).join(', ');
    return [
      `${plural(names.length, 'metric')} only in ${side}: ${shown}${more > 0 ? ` and ${more} more` : ''}.`,
    ];
  });
}

/** Whether all metrics have the same n. */
export const isUniform = (metrics: readonly Pick<MetricChange, 'n'>[]): boolean =>
  new Set(metrics.map(({ n }) => n.join())).size === 1;

/** Otherwise a metric without a test has a value of 0. */
const isSpreadUnknown = ({ verdict, n }: Pick<MetricChange, 'verdict' | 'n'>): boolean =>
  verdict === 'within_process' || (verdict === 'no_spread' && Math.min(...n) < 2);

/** How to get a verdict for metrics without one, and why they have none unless all lack it, which the headline says. */
export function unclaimedNote(
  metrics: readonly Pick<MetricChange, 'verdict' | 'n'>[],
  fix: string,
): string[] {
  const unclaimed = metrics.filter(isSpreadUnknown);
  if (unclaimed.length === 0) return [];
  const compared = metrics.filter(({ verdict }) => verdict !== 'missing');
  return [
    unclaimed.length === compared.length
      ? fix
      : `Some metrics have no verdict: the spread between launches of a side is unknown. ${fix}`,
  ];
}

/** Difference between the change and new / base from which a note explains it. */
const noticedDifference = 0.005;

/** Why a change differs from the two values next to it. */
export const changeNote = (
  metrics: readonly Pick<MetricChange, 'base' | 'now' | 'change' | 'change_ci95'>[],
): string[] =>
  metrics.some(
    ({ base, now, change, change_ci95 }) =>
      base !== null &&
      now !== null &&
      change !== null &&
      change_ci95 !== null &&
      Math.abs(now / base - 1 - change) > noticedDifference,
  )
    ? [
        'Both values are means; the change compares typical values (geometric means or, by rank test, medians of ratios), on which outliers have less effect.',
      ]
    : [];

export const withinProcessNote = (isWithinProcess: boolean): string[] =>
  isWithinProcess ? ['Repeats of one process were treated as independent (--within-process).'] : [];

/** Differences in machine, software and workload. */
export function differenceTable(
  differences: readonly { label: string; baseline: string | null; current: string | null }[],
  base = 'base',
  now = 'new',
): Block[] {
  const isRecorded = ({ baseline, current }: (typeof differences)[number]): boolean =>
    baseline !== null && current !== null;
  const side = (text: string | null): Text => text ?? { missing: 'unknown on this side' };
  const table = (rows: typeof differences): Block => ({
    type: 'table',
    title: 'Other differences',
    columns: [
      { id: 'name', head: '' },
      { id: 'base', head: base },
      { id: 'new', head: now, wraps: true },
    ],
    rows: rows.map(({ label, baseline, current }) => ({ cells: [label, side(baseline), side(current)] })),
  });
  return [
    ...onSides(differences.filter(isRecorded), false, table),
    ...onSides(
      differences.filter((difference) => !isRecorded(difference)),
      true,
      table,
    ),
  ];
}

/** What one side does not record need not differ, so it is below a heading of its own. */
export const onSides = <D>(
  differences: readonly D[],
  onOneSide: boolean,
  blockOf: (differences: readonly D[]) => Block,
  sides = 'one side',
): Block[] =>
  differences.length === 0
    ? []
    : [
        ...(onOneSide ? [{ type: 'heading', text: `Recorded on ${sides} only` } as const] : []),
        blockOf(differences),
      ];
