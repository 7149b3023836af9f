import type { WaterfallKind } from '../../model/documents/explain.js';
import type { FindingContext } from './rule.js';

/** Measured time of a kind of stage, what of it each bar holds, and how often it ran: what gains are clamped to. */
export interface StageTime {
  kind: WaterfallKind;
  instances: number;
  /** Mean W, ms. */
  measured_ms: number;
  /** By id; empty without a waterfall. */
  bars: ReadonlyMap<string, number>;
}

/** Of every stage with a waterfall, else of every kind of window of the timeline. */
export async function stageTimes({ waterfalls, scope, operators }: FindingContext): Promise<StageTime[]> {
  const found = waterfalls.flatMap(({ kind, instances, measured_ms, bars }): StageTime[] =>
    // A request is made of the stages that are here already.
    measured_ms.value === null || kind === 'request'
      ? []
      : [
          {
            kind,
            instances,
            measured_ms: measured_ms.value,
            bars: new Map(bars.map(({ id, ms }) => [id, ms])),
          },
        ],
  );
  const timeline = scope ?? operators;
  if (found.length > 0 || !timeline) return found;
  const rows = await timeline.database.query<{ kind: WaterfallKind; instances: number; measured_ms: number }>(
    `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS measured_ms FROM windows
     WHERE kind <> 'sampling' GROUP BY kind`,
  );
  return rows.map((row) => ({ ...row, bars: new Map() }));
}
