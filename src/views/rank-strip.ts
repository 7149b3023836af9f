import type { CollectivesResult } from '../model/documents/collectives.js';
import type { Block, Text } from './block.js';
import { median } from '../model/statistics.js';
import { formatPercent } from '../vocabulary/format.js';
import { type ColumnOf, tableOf } from './table-of.js';

type RankSteps = NonNullable<NonNullable<CollectivesResult['job']>['step_times']>;

/** Time above the median rank, as a share of it, that gets the darkest shade. */
const darkestShare = 0.5;

/** Maximum ranks in a summary. */
const briefRanks = 8;

/** A rank compared with the median rank of the same step. */
interface RankRow {
  rank: number;
  mean_ms: number | null;
  /** Largest share above the median, and its step; null without a time. */
  aboveMedian: number | null;
  step: Text | null;
  slowest: number;
  steps: number;
}

/** Link to the steps of a rank in the timeline, on pages that have one. @param steps numbered from 1 */
type StepLink = (rank: number, steps: RankSteps['steps'][number]) => string | undefined;

/** Chart of ranks × steps: a rank that others wait for is a dark row. */
export function rankStrip(rankSteps: RankSteps, linkOf: StepLink = () => undefined): Block {
  const medians = rankSteps.steps.map((_, index) => {
    const times = rankSteps.ranks.flatMap(({ ms }) => ms[index] ?? []);
    return times.length === 0 ? null : median(times);
  });
  const aboveMedian = rankSteps.ranks.map(({ ms }) =>
    ms.map((stepMs, index) => (stepMs === null || !medians[index] ? null : stepMs / medians[index] - 1)),
  );
  const names = rankSteps.steps.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
  const largestExcess = rankSteps.steps.map((_, index) =>
    Math.max(...aboveMedian.map((excess) => excess[index] ?? -Infinity)),
  );
  const rows = rankSteps.ranks.map(({ rank, ms }, row): RankRow => {
    const shares = aboveMedian[row]!;
    const times = ms.filter((stepMs) => stepMs !== null);
    const top = shares.reduce<number | null>(
      (best, share, index) => (share !== null && (best === null || share > shares[best]!) ? index : best),
      null,
    );
    return {
      rank,
      mean_ms: times.length === 0 ? null : times.reduce((sum, stepMs) => sum + stepMs, 0) / times.length,
      aboveMedian: top === null ? null : shares[top]!,
      step: top === null ? null : stepText(linkOf(rank, rankSteps.steps[top]!), names[top]!),
      slowest: shares.filter((share, index) => share !== null && share > 0 && share === largestExcess[index])
        .length,
      steps: times.length,
    };
  });
  return {
    type: 'chart',
    level: 2,
    title: 'Own time by rank and step',
    label: `Time by rank and step: the darkest cells took at least ${formatPercent(darkestShare)} longer than the median rank of the step.`,
    chart: {
      form: 'heat',
      slim: true,
      shades: [
        { name: 'median rank or less', shade: 0 },
        { name: `${formatPercent(darkestShare / 2)} longer`, shade: 0.5 },
        { name: `${formatPercent(darkestShare)} longer or more`, shade: 1 },
      ],
      x: { name: 'step', values: names },
      // The first rank is the top row.
      y: { name: 'rank', values: rankSteps.ranks.map(({ rank }) => `${rank}`).toReversed() },
      cells: rankSteps.ranks.flatMap(({ rank, ms }, row) =>
        ms.map((stepMs, index) => {
          const share = aboveMedian[row]![index]!;
          return {
            x: index,
            y: rankSteps.ranks.length - 1 - row,
            shade: share === null ? null : Math.min(1, Math.max(0, share / darkestShare)),
            lines: [stepMs === null ? 'no such step' : { n: stepMs, unit: 'ms' }],
            notes: [`rank ${rank}, step ${names[index]}`],
          };
        }),
      ),
    },
    behind: tableOf(
      'Own time by rank: without exposed communication, against the median rank of the step',
      rankColumns,
      rows.toSorted(
        (a, b) => b.slowest - a.slowest || (b.aboveMedian ?? 0) - (a.aboveMedian ?? 0) || a.rank - b.rank,
      ),
      { brief: briefRanks, filter: true },
    ),
  };
}

const stepText = (link: string | undefined, text: string): Text =>
  link === undefined ? text : { link, text: `${text}, in the timeline` };

const noStep = { missing: 'the rank has no such step' } as const;

const rankColumns: readonly ColumnOf<RankRow>[] = [
  { id: 'rank', head: 'rank', numeric: true, cell: ({ rank }) => ({ count: rank }) },
  {
    id: 'own_ms',
    head: 'own time, mean',
    numeric: true,
    cell: ({ mean_ms: mean }) => (mean === null ? noStep : { n: mean, unit: 'ms' }),
  },
  {
    id: 'max_above_median',
    head: 'max above the median',
    numeric: true,
    cell: ({ aboveMedian }) =>
      aboveMedian === null ? noStep : { n: aboveMedian, unit: 'ratio', signed: true },
  },
  { id: 'max_step', head: 'in step', cell: ({ step }) => step ?? noStep },
  { id: 'slowest', head: 'slowest rank in', cell: ({ slowest, steps }) => `${slowest} of ${steps}` },
];
