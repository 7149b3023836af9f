import type { StageWaterfall } from '../../model/documents/explain.js';
import { isProfiled, isSlower } from '../../model/headline-time.js';
import type { Session } from '../../session/open.js';
import type { ScopeOptions } from '../trace/scope.js';
import { sessionWaterfalls } from './session-waterfalls.js';

/** A session in a comparison, with the waterfalls of one rank and device. */
interface ComparedSide {
  session: Session;
  focus?: ScopeOptions;
  waterfalls: StageWaterfall[];
}

/** Whether the bars are scaled to the time without the profiler: a shorter one for operators on the CPU, a longer one for a timeline. */
export const isScaled = ({ source, clean_ms: clean, measured_ms: profiled }: StageWaterfall): boolean =>
  clean.value !== null &&
  profiled.value !== null &&
  ((source === 'operators' && isSlower(profiled.value, clean.value)) ||
    (source === 'trace' && isSlower(clean.value, profiled.value)));

/** Comparing a clean time with a profiled one would compare the profiler. */
export const isComparedProfiled = (
  kind: string,
  sides: readonly Pick<ComparedSide, 'waterfalls'>[],
): boolean =>
  sides.some(({ waterfalls }) => waterfalls.some((stage) => stage.kind === kind && isProfiled(stage)));

/** Sides with scaled bars in stages that are compared with or without the profiler. */
export const scaledSides = <S extends Pick<ComparedSide, 'waterfalls'>>(
  sides: readonly S[],
  profiled: boolean,
): S[] =>
  sides.filter(({ waterfalls }) =>
    waterfalls.some((stage) => isScaled(stage) && isComparedProfiled(stage.kind, sides) === profiled),
  );

/** Sides with bars as recorded under the profiler in the stages with times that are compared under it. */
export async function withRecordedBars<S extends ComparedSide>(sides: readonly S[]): Promise<S[]> {
  const scaled = new Set(scaledSides(sides, true));
  const all: S[] = [];
  for (const side of sides) {
    if (!scaled.has(side)) {
      all.push(side);
      continue;
    }
    const database = await side.session.connect();
    try {
      const { stages } = await sessionWaterfalls(side.session, database, side.focus, { clean: false });
      const waterfalls = side.waterfalls.map((stage) => {
        if (!isScaled(stage) || !isComparedProfiled(stage.kind, sides)) return stage;
        const recorded = stages.find(({ kind, name }) => kind === stage.kind && name === stage.name);
        return recorded ? { ...stage, bars: recorded.bars } : stage;
      });
      all.push({ ...side, waterfalls });
    } finally {
      await database.close();
    }
  }
  return all;
}
