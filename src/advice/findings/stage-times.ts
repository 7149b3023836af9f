import type { StageWaterfall, WaterfallKind } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import type { FindingContext } from './rule.js';

/** Headline time, bars and instance count of a kind of stage; gains are clamped to them. */
export interface StageTime {
  kind: WaterfallKind;
  instances: number;
  /** Per mean instance; without the profiler if a clean execution exists. */
  time_ms: number;
  /** Lower end of its 95 % interval; the time itself where it has none. */
  low_ms: number;
  /** Bars by id; empty without a waterfall. */
  bars: ReadonlyMap<string, number>;
}

/** Mean window of a kind of stage, ms: the base of shares if the kind has no waterfall. */
interface Window {
  kind: WaterfallKind;
  wall_ms: number;
}

/** The windows with the headline time of their stage instead of their own. */
export const withHeadlineTime = <W extends Window>(
  waterfalls: readonly StageWaterfall[],
  windows: readonly W[],
): W[] =>
  windows.map((window) => {
    const own = waterfalls.find(({ kind, name }) => kind === window.kind && name === null);
    return { ...window, wall_ms: (own && headlineTime(own).value) ?? window.wall_ms };
  });

/** For every stage with a waterfall, else for every kind of window of the timeline. */
export async function stageTimes({ waterfalls, scope, operators }: FindingContext): Promise<StageTime[]> {
  const found = waterfalls.flatMap((waterfall): StageTime[] => {
    const { kind, instances, bars } = waterfall;
    const time = headlineTime(waterfall);
    const time_ms = time.value;
    const low_ms = ('ci95' in time ? time.ci95?.[0] : null) ?? time_ms;
    // A request consists of stages that are already listed.
    return time_ms === null || low_ms === null || kind === 'request'
      ? []
      : [
          {
            kind,
            instances,
            time_ms,
            low_ms: Math.min(time_ms, Math.max(0, low_ms)),
            bars: new Map(bars.map(({ id, ms }) => [id, ms])),
          },
        ];
  });
  const timeline = scope ?? operators;
  if (found.length > 0 || !timeline) return found;
  const rows = await timeline.database.query<{ kind: WaterfallKind; instances: number; time_ms: number }>(
    `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS time_ms FROM windows
     WHERE kind <> 'sampling' GROUP BY kind`,
  );
  return rows.map((row) => ({ ...row, low_ms: row.time_ms, bars: new Map() }));
}
