import type { ComparedWaterfall } from '../../model/documents/compare.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { busyMs, explainedBars, headlineTime, isProfiled } from '../../model/headline-time.js';
import { isComparedProfiled } from '../../facts/waterfall/recorded-bars.js';
import { sessionWaterfalls } from '../../facts/waterfall/session-waterfalls.js';
import { barsSideBySide } from '../../facts/waterfall/side-by-side.js';
import { ranksOf } from './scaling.js';
import type { Side } from './side.js';

/** The waterfalls of the same rank and device as the side's stages and kernels, and the ranks of the session. */
export async function waterfallsOf({
  session,
  focus,
}: Pick<Side, 'session' | 'focus'>): Promise<Pick<Side, 'waterfalls' | 'ranks'>> {
  const database = await session.connect();
  try {
    const { stages } = await sessionWaterfalls(session, database, focus);
    return { waterfalls: stages, ranks: await ranksOf(session, database) };
  } finally {
    await database.close();
  }
}

/**
 * A side's stage with the time of its waterfall, if it has one, because the two are shown together. Kernels that
 * were launched before sampling are not its work there, so its busy time is the waterfall's, too.
 */
export function withWaterfallTime(
  stage: Side['stages'][number],
  waterfalls: readonly StageWaterfall[],
): Side['stages'][number] {
  const [first, ...more] = waterfalls.filter(({ kind }) => kind === stage.phase);
  if (!first || more.length > 0) return stage;
  const duration_ms = headlineTime(first);
  if (duration_ms.value === null) return stage;
  const isOnlyProfiled = isProfiled(first) && stage.value.kernels !== null;
  return {
    ...stage,
    value: { ...stage.value, duration_ms, ...(isOnlyProfiled && { busy_ms: busyMs(first) }) },
    is_clean: !isProfiled(first),
    ...(stage.profiled_ms && { profiled_ms: first.measured_ms }),
  };
}

/** Stages with a waterfall on at least two sides. Ranges named by the program may differ between sides. */
export function comparedWaterfalls(sides: readonly Pick<Side, 'waterfalls'>[]): ComparedWaterfall[] {
  const kinds = [...new Set(sides.flatMap(({ waterfalls }) => waterfalls.map(({ kind }) => kind)))];
  return kinds
    .filter((kind) => kind !== 'other')
    .map((kind) => ({
      profiled: isComparedProfiled(kind, sides),
      ofKind: sides.map(({ waterfalls }) => waterfalls.find((stage) => stage.kind === kind) ?? null),
    }))
    .filter(({ ofKind }) => ofKind.filter((stage) => stage !== null).length > 1)
    .map(({ profiled, ofKind }) => compareStage(ofKind, profiled));
}

function compareStage(
  sideWaterfalls: readonly (StageWaterfall | null)[],
  profiled: boolean,
): ComparedWaterfall {
  const sides = sideWaterfalls.map(
    (waterfall) => waterfall && (profiled ? waterfall.bars : explainedBars(waterfall.bars).bars),
  );
  return {
    phase: sideWaterfalls.find((waterfall) => waterfall !== null)!.kind,
    profiled,
    times_ms: sideWaterfalls.map(
      (waterfall) => waterfall && (profiled ? waterfall.measured_ms : headlineTime(waterfall)),
    ),
    roofline_ms: sideWaterfalls.map((waterfall) => waterfall && waterfall.roofline_ms),
    bars: barsSideBySide(sides).map((bar) => ({
      ...bar,
      changes: bar.values.map((ms, i) => (i === 0 || ms === null ? null : changeFrom(bar.values[0]!, ms))),
    })),
  };
}

const changeFrom = (first: number | null, ms: number): number | null => (first === null ? null : ms - first);
