import { jointKinds } from '../model/documents/trace-phase.js';
import { isBarOf } from '../model/bars.js';
import { halfInterval } from '../model/half-interval.js';
import type {
  ExplainResult,
  Finding,
  StageWaterfall,
  WaterfallBar,
  WaterfallKind,
} from '../model/documents/explain.js';
import { explainedBars, headlineTime, isProfiled, isSlower } from '../model/headline-time.js';
import { barColor } from '../vocabulary/colors.js';
import { barWords } from '../vocabulary/bars.js';
import { pointLabel } from '../vocabulary/bench.js';
import { stageLabel } from '../vocabulary/stages.js';
import type { WaterfallChart } from './chart.js';
import { capitalize } from '../vocabulary/sentence.js';

/** Bars below this share of the measured time are merged. */
export const smallShare = 0.01;
export const isAlwaysShown = (id: string): boolean => id === 'roofline' || id === 'unattributed';

/** A bar as displayed. */
export type ShownBar = Pick<WaterfallBar, 'id' | 'label' | 'ms' | 'share' | 'count' | 'note' | 'parts'> & {
  /** Number of bars that `smaller` sums. */
  mergedCount?: number;
};

/** Label of a bar on its line; for merged bars their number. */
export const shortName = ({ label, mergedCount }: ShownBar): string =>
  mergedCount === undefined ? label : `${mergedCount} smaller`;

/**
 * Bars in order; those below 1 % of the time are merged into one before `unattributed`, so the sum stays the same. Profiler overhead comes
 * after the sum (`timeLines`).
 */
export const shownBars = (stage: Pick<StageWaterfall, 'bars'>): ShownBar[] =>
  mergeSmall(stage, (all) =>
    all.filter(({ id, share }) => !isAlwaysShown(id) && Math.abs(share) < smallShare),
  );

/** Bars of a summary: the largest ones, all others merged. */
export const briefBars = (stage: Pick<StageWaterfall, 'bars'>, max: number): ShownBar[] =>
  mergeSmall(stage, (all) =>
    all
      .filter(({ id }) => id !== 'roofline')
      .toSorted((a, b) => Math.abs(b.ms) - Math.abs(a.ms))
      .filter(({ share }, index) => index >= max || Math.abs(share) < smallShare),
  );

function mergeSmall(
  { bars: all }: Pick<StageWaterfall, 'bars'>,
  smallOf: (bars: WaterfallBar[]) => WaterfallBar[],
) {
  const { bars } = explainedBars(all);
  const small = new Set(smallOf(bars));
  if (small.size < 2) return bars;
  const large: ShownBar[] = bars.filter((bar) => !small.has(bar));
  const unattributedIndex = large.findIndex(({ id }) => id === 'unattributed');
  const sum = (valueOf: (bar: WaterfallBar) => number): number =>
    [...small].reduce((total, bar) => total + valueOf(bar), 0);
  const mergedBar: ShownBar = {
    id: 'smaller',
    mergedCount: small.size,
    label: `${small.size} smaller: ${bars
      .filter((bar) => small.has(bar))
      .map(({ label }) => label)
      .join(', ')}`,
    ms: sum(({ ms }) => ms),
    share: sum(({ share }) => share),
    count: null,
    note: null,
    parts: [],
  };
  return large.toSpliced(unattributedIndex === -1 ? large.length : unattributedIndex, 0, mergedBar);
}

const stageOrder: readonly WaterfallKind[] = [
  'decode',
  'mixed',
  'prefill',
  'training',
  'outside',
  'request',
  'sampling',
  'load',
  'warmup',
  'other',
];

/** Steps of a served model first. */
export const stageRank = (kind: string): number => (stageOrder as readonly string[]).indexOf(kind);

function stagesInOrder({ stages }: Pick<ExplainResult, 'stages'>): StageWaterfall[] {
  // Steps of unknown kind have no name, ranges that the program marks have one.
  const rankOf = ({ kind, name }: StageWaterfall) =>
    stageRank(kind === 'other' && name === null ? 'training' : kind);
  return stages.toSorted((a, b) => rankOf(a) - rankOf(b));
}

/** Time above the roofline, summed over all instances. */
export const lostMs = (stage: StageWaterfall): number =>
  stage.instances * Math.max(0, (headlineTime(stage).value ?? 0) - (stage.roofline_ms.value ?? 0));

/**
 * Kinds shown bar by bar: requests consist of steps, sampling is part of them, and loading and warm-up happen once, so these get one line
 * each.
 */
const barKinds: ReadonlySet<WaterfallKind> = new Set(jointKinds);

/**
 * Stages to show bar by bar and stages to show as one line each: bar by bar are the first one, and of the other steps those with the most
 * time lost.
 */
export function leadingStages(
  data: Pick<ExplainResult, 'stages'>,
  max = 2,
): { full: StageWaterfall[]; brief: StageWaterfall[] } {
  const all = stagesInOrder(data);
  const [lead, ...rest] = all;
  if (!lead) return { full: [], brief: [] };
  const next = rest
    .filter(({ kind, source }) => barKinds.has(kind) || source === 'serving')
    .toSorted((a, b) => lostMs(b) - lostMs(a));
  const chosen = new Set([lead, ...next.slice(0, max - 1)]);
  return { full: all.filter((stage) => chosen.has(stage)), brief: all.filter((stage) => !chosen.has(stage)) };
}

/** Lines below the bars: the headline time, which the bars sum to, then the profiler overhead, ms. */
export function timeLines(stage: StageWaterfall): { name: string; ms: number }[] {
  const { profiler } = explainedBars(stage.bars);
  const ms = headlineTime(stage).value ?? 0;
  const profiledMs = stage.measured_ms.value ?? 0;
  const added = profiler ?? { label: barWords('profiler_overhead').label, ms: profiledMs - ms };
  return [
    { name: 'measured', ms },
    ...(profiler || isSlower(stage.clean_ms.value, profiledMs)
      ? [
          // Where the clean execution was slower, the profiler added nothing.
          { name: added.ms < 0 ? 'faster under the profiler' : added.label, ms: added.ms },
          { name: 'under the profiler', ms: profiledMs },
        ]
      : []),
  ];
}

/** The largest bars above the roofline: "host.program 88 %, launch_overhead 6 %". */
export function largestBars(stage: Pick<StageWaterfall, 'bars'>, max = 2): WaterfallBar[] {
  return explainedBars(stage.bars)
    .bars.filter(({ id, share }) => id !== 'roofline' && share >= smallShare)
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, max);
}

type NamedStage = Pick<StageWaterfall, 'kind' | 'name' | 'point' | 'from_schedule'>;

export const stageName = (stage: NamedStage): string =>
  `${stageLabel(stage)}${stage.point === null ? '' : ` at ${pointLabel(stage.point)}`}`;

/** The name of a stage at the start of a line. */
export const stageHead = (stage: NamedStage): string => capitalize(stageName(stage));

/** Queries behind the findings; "[sql 3]" refers to the third. */
export function numberedQueries(findings: readonly Finding[]): string[] {
  const queries = findings.flatMap(({ evidence }) => evidence.map(({ sql }) => sql));
  return [...new Set(queries)].filter((sql) => sql !== null);
}

/**
 * Waterfall chart from the roofline to the measured time of a mean instance.
 * @param linkOf link to the best place of a bar, by its id
 */
export function waterfallChart(
  stage: StageWaterfall,
  linkOf: (bar: string) => string | undefined = () => undefined,
): WaterfallChart {
  const confidence = new Map(stage.bars.map((bar) => [bar.id, bar.confidence]));
  return {
    form: 'waterfall',
    unit: 'ms',
    bars: shownBars(stage).map((bar) => ({
      ...chartBar(bar.id, shortName(bar), bar.ms),
      meaning: bar.note === null ? bar.label : `${bar.label}: ${bar.note}`,
      confidence: confidence.get(bar.id) ?? null,
      ...linkProperty(linkOf(bar.id)),
    })),
    total: measuredTotal(headlineTime(stage).value ?? 0, isProfiled(stage)),
    halfInterval: halfInterval(headlineTime(stage)),
  };
}

const linkProperty = (link: string | undefined) => (link === undefined ? {} : { link });

export const chartBar = (id: string, name: string, value: number) => ({
  name,
  value,
  color: barColor(id),
  ...(isBarOf(id, 'nonessential') && { light: true }),
});

export const measuredTotal = (value: number, profiled: boolean) => ({
  value,
  meaning: profiled ? 'a mean instance, under the profiler' : 'a mean instance',
  shareOf: 'the measured time',
});
