import type { StageWaterfall, WaterfallKind } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import type { FindingContext } from './rule.js';

/** Headline time of a kind of stage, what of it each bar holds, and how often it ran: what gains are clamped to. */
export interface StageTime {
  kind: WaterfallKind;
  instances: number;
  /** Of a mean instance; without the profiler where a clean execution shows it. */
  time_ms: number;
  /** By id; empty without a waterfall. */
  bars: ReadonlyMap<string, number>;
}

/** A mean window of a kind of stage, ms: what shares are of where the kind has no waterfall. */
interface Window {
  kind: WaterfallKind;
  wall_ms: number;
}

/** The windows with the time that every surface shows for their stage instead of their own. */
export const withHeadlineTime = <W extends Window>(
  waterfalls: readonly StageWaterfall[],
  windows: readonly W[],
): W[] =>
  windows.map((window) => {
    const own = waterfalls.find(({ kind, name }) => kind === window.kind && name === null);
    return { ...window, wall_ms: (own && headlineTime(own).value) ?? window.wall_ms };
  });

/** Of every stage with a waterfall, else of every kind of window of the timeline. */
export async function stageTimes({ waterfalls, scope, operators }: FindingContext): Promise<StageTime[]> {
  const found = waterfalls.flatMap((waterfall): StageTime[] => {
    const { kind, instances, bars } = waterfall;
    const { value: time_ms } = headlineTime(waterfall);
    // A request is made of the stages that are here already.
    return time_ms === null || kind === 'request'
      ? []
      : [{ kind, instances, time_ms, bars: new Map(bars.map(({ id, ms }) => [id, ms])) }];
  });
  const timeline = scope ?? operators;
  if (found.length > 0 || !timeline) return found;
  const rows = await timeline.database.query<{ kind: WaterfallKind; instances: number; time_ms: number }>(
    `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS time_ms FROM windows
     WHERE kind <> 'sampling' GROUP BY kind`,
  );
  return rows.map((row) => ({ ...row, bars: new Map() }));
}
