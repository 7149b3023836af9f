import { stepKinds } from '../../model/record.js';
import type { StageWaterfall, VerifyResult } from '../../model/documents/explain.js';
import { busyMs, explainedBars, headlineTime, isProfiled } from '../../model/headline-time.js';
import { figure, type Figure, mapFigure } from '../../model/figure.js';
import { halfWidth, noiseOfDifference } from '../../facts/difference/half-width.js';
import { barsSideBySide } from '../../facts/waterfall/side-by-side.js';
import { formatPercent, formatQuantity, formatSetting } from '../../vocabulary/format.js';

export type StageVerdict = VerifyResult['stages'][number];

/** A stage of both sessions, and the times that are compared. */
export interface StagePair {
  before: StageWaterfall;
  after: StageWaterfall;
  /** Factor on the later session's times: sequences, or tokens, per step before over those after. */
  scale: number;
  verdict: StageVerdict;
  /** Wall time before minus after, and half of the 95 % interval of that difference; null unless both have a spread. */
  wall: { gained_ms: number; noise_ms: number | null };
}

/** Half of the 95 % interval of the mean wall time, as a share of it, up to which wall times are compared. */
const maxSteadyHalfWidth = 0.1;

/** A difference of at least this many half widths of its 95 % interval is graded on wall time even if both vary more. */
const clearNoiseFactor = 2;

/** Kinds with times that are for a whole batch. */
const kindsOfBatch: ReadonlySet<string> = new Set([...stepKinds, 'sampling', 'request']);

/** Sequences per step of both sessions, or the tokens of prefill. */
type Sequences = NonNullable<StageVerdict['sequences']>;

/**
 * Sequences per step if they differ: recorded with the steps, else the batch sizes of the runs. The work of prefill is in tokens, which
 * are compared if both are known: a server may compute a part of a prompt per step.
 * @returns null if they are the same, not known, or not what the stage's time is for
 */
function sequencesOf(
  before: StageWaterfall,
  after: StageWaterfall,
  batches: { before: number | null; after: number | null },
): Sequences | null {
  // A point of a benchmark is one batch size; the run's is that of another point.
  const isSamePoint = before.point !== null && before.point === after.point;
  if (isSamePoint || !kindsOfBatch.has(before.kind)) return null;
  const recorded = { before: before.sequences ?? null, after: after.sequences ?? null };
  const { before: from, after: to } =
    recorded.before === null || recorded.after === null ? batches : recorded;
  if (from === null || to === null || from === to) return null;
  if (before.kind === 'prefill' && before.new_tokens !== null && after.new_tokens !== null)
    return { unit: 'token', before: before.new_tokens, after: after.new_tokens };
  return { unit: 'sequence', before: from, after: to };
}

/** Stages that both sessions have, by kind and by point of a benchmark. */
export function stagePairs(
  before: readonly StageWaterfall[],
  after: readonly StageWaterfall[],
  batches: { before: number | null; after: number | null },
): StagePair[] {
  const unpaired = [...after];
  return before.flatMap((earlier) => {
    // User ranges: their content may have changed with the program.
    if (earlier.kind === 'other') return [];
    const index = unpaired.findIndex(
      ({ kind, point }) =>
        kind === earlier.kind && (point === earlier.point || point === null || earlier.point === null),
    );
    if (index === -1) return [];
    const [later] = unpaired.splice(index, 1);
    const sequences = sequencesOf(earlier, later!, batches);
    const verdict = verdictOf(earlier, later!, sequences);
    return verdict === null
      ? []
      : [{ before: earlier, after: later!, scale: scaleOf(sequences), ...verdict }];
  });
}

const scaleOf = (sequences: Sequences | null): number =>
  sequences === null ? 1 : sequences.before / sequences.after;

function verdictOf(
  before: StageWaterfall,
  after: StageWaterfall,
  sequences: Sequences | null,
): Pick<StagePair, 'verdict' | 'wall'> | null {
  const scale = scaleOf(sequences);
  const times = wallTimes(before, after);
  if (times === null) return null;
  const [wallBefore, wallAfter] = [times.before, scaleTime(times.after, scale)];
  const spreads = [times.before, times.after].map(halfWidth);
  const wall = {
    gained_ms: (wallBefore.value ?? 0) - (wallAfter.value ?? 0),
    noise_ms: noiseOfDifference(wallBefore, wallAfter),
  };
  const onWall = (why: string) => ({
    wall,
    verdict: stageVerdict(before, after, sequences, {
      profiled: times.profiled,
      before_ms: wallBefore,
      after_ms: wallAfter,
      graded_on: 'wall',
      graded_why: `${why} (${times.statistic})`,
    }),
  });
  const unsteady = spreads
    .map((share, i) => [share, i] as const)
    .find(([share]) => share === null || share > maxSteadyHalfWidth);
  if (unsteady === undefined) {
    const [x, y] = spreads.map((share) => `± ${formatPercent(share!)}`);
    return onWall(`the 95 % interval of the stage's mean is ${x} before and ${y} after the change`);
  }
  if (wall.noise_ms !== null && Math.abs(wall.gained_ms) >= clearNoiseFactor * wall.noise_ms) {
    return onWall(
      `the difference is much larger than its error of ± ${formatQuantity(wall.noise_ms, 'ms', 2)}`,
    );
  }
  const [share, side] = unsteady;
  const sideName = side === 0 ? 'before' : 'after';
  const why =
    share === null
      ? `the spread of the stage ${sideName} the change is unknown`
      : `the 95 % interval of the stage's mean ${sideName} the change is ${share > 1 ? 'wider than the mean itself' : `± ${formatPercent(share)}`}`;
  const gpu = [busyMs(before), busyMs(after) * scale];
  // GPU kernels are timed independently of the host; CPU operators and bars of other sources share its noise.
  if (before.source !== 'trace' || after.source !== 'trace' || gpu[0]! <= 0 || gpu[1]! <= 0)
    return onWall(`${why}: a difference may be noise`);
  const verdict = stageVerdict(before, after, sequences, {
    profiled: 'none',
    before_ms: figure(gpu[0]!, 'ms', 'kernels and copies of a mean instance'),
    after_ms: figure(gpu[1]!, 'ms', 'kernels and copies of a mean instance'),
    graded_on: 'gpu',
    graded_why: why,
  });
  return { wall, verdict };
}

/**
 * The same statistic on both sides: the headline times if both are without a profiler, else the measured ones, which are under a
 * profiler for timelines; medians if both are known. Null if a stage was not measured.
 */
function wallTimes(
  before: StageWaterfall,
  after: StageWaterfall,
): { before: Figure; after: Figure; statistic: string; profiled: StageVerdict['profiled'] } | null {
  if (before.measured_ms.value === null || after.measured_ms.value === null) return null;
  if (!isProfiled(before) && !isProfiled(after))
    return {
      before: headlineTime(before),
      after: headlineTime(after),
      statistic: 'means without a profiler',
      profiled: 'none',
    };
  const [first, second] = [before, after].map(({ source }) => source === 'trace' || source === 'operators');
  const profiled = first === second ? 'both' : first ? 'before' : 'after';
  const profiler =
    profiled === 'both' ? ' under the profiler' : `, only ${profiled} the change under a profiler`;
  return before.median_ms !== null && after.median_ms !== null
    ? {
        before: median(before),
        after: median(after),
        statistic: `medians${profiler}; bars are means`,
        profiled,
      }
    : { before: before.measured_ms, after: after.measured_ms, statistic: `means${profiler}`, profiled };
}

/** Why no expected gain is compared with the difference of the two times; null if they are. */
export function whyNotGraded({ before, verdict: { graded_on, profiled } }: StagePair): string | null {
  if (graded_on === 'gpu' || profiled === 'none') return null;
  if (profiled !== 'both')
    return `only the time ${profiled} the change is under a profiler, and what it adds is part of the difference`;
  return isProfiled(before)
    ? null
    : 'the gain is expected without a profiler, and the later session has times only under one';
}

/** The median, with the width of the mean's interval. */
function median({ measured_ms: mean, median_ms: value }: StageWaterfall): Figure {
  const share = halfWidth(mean);
  return figure(value!, 'ms', 'median measured time of the stage', {
    ...(mean.value !== null && mean.n !== undefined ? { n: mean.n } : {}),
    ...(share === null ? {} : { ci95: [Math.max(0, value! * (1 - share)), value! * (1 + share)] }),
  });
}

const scaleTime = (time: Figure, scale: number): Figure =>
  scale === 1
    ? time
    : mapFigure(
        time,
        'ms',
        time.value === null ? '' : `${time.source}, × ${formatSetting(scale)}`,
        (ms) => ms * scale,
      );

function stageVerdict(
  before: StageWaterfall,
  after: StageWaterfall,
  sequences: Sequences | null,
  times: Pick<StageVerdict, 'before_ms' | 'after_ms' | 'graded_on' | 'graded_why' | 'profiled'>,
): StageVerdict {
  return {
    kind: before.kind,
    point: before.point,
    ...(before.from_schedule && after.from_schedule ? { from_schedule: true } : {}),
    ...times,
    sequences,
    achieved_ms: (times.before_ms.value ?? 0) - (times.after_ms.value ?? 0),
    // What a profiler added is not a part of times without it.
    bars: barsSideBySide(
      [before.bars, after.bars].map((bars) => (times.profiled === 'none' ? explainedBars(bars).bars : bars)),
    ).map(({ id, values: [from, to] }) => ({
      id,
      before_ms: from ?? null,
      after_ms: typeof to === 'number' ? to * scaleOf(sequences) : null,
    })),
  };
}
