import type { WaterfallKind } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import type { FindingContext } from './rule.js';
import { stageFacts, type StageFacts } from './stage-facts.js';

/** Headline time, bars and instance count of a kind of stage; gains are clamped to them. */
export interface StageTime {
  kind: WaterfallKind;
  instances: number;
  /** Per mean instance; without the profiler if a clean execution exists. */
  time_ms: number;
  /** Lower end of its 95 % interval; the time itself without an interval. */
  low_ms: number;
  /** Host time for its launches, which shorter kernels do not change; 0 if unknown. */
  launching_ms: number;
  /** As in StageFacts; a stage in which the device hides it takes at least as long. */
  own_host_ms: number | null;
  /** Host time in waits for copies: the copies themselves, which other changes do not shorten; 0 if unknown. */
  copying_ms: number;
  launches: number;
  /** Device work; the whole time if unknown. */
  busy_ms: number;
  /** Bars by id; empty without a waterfall. */
  bars: ReadonlyMap<string, number>;
}

const workOf = (facts: readonly StageFacts[], kind: WaterfallKind, time_ms: number) => {
  const stageFact = facts.find((fact) => fact.kind === kind);
  return {
    launching_ms: stageFact?.launching_ms ?? 0,
    own_host_ms: stageFact?.own_host_ms ?? null,
    copying_ms: stageFact
      ? Math.min(stageFact.copy_ms, stageFact.waits.copy.ms + stageFact.waits.read.ms)
      : 0,
    launches: stageFact?.launches ?? 0,
    busy_ms: stageFact?.busy_ms ?? time_ms,
  };
};

/** For every stage with a waterfall, else for every kind of window of the timeline. */
export async function stageTimes(context: FindingContext): Promise<StageTime[]> {
  const { waterfalls, scope, operators } = context;
  const facts = await stageFacts(context);
  const times = waterfalls.flatMap((waterfall): StageTime[] => {
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
            ...workOf(facts, kind, time_ms),
            bars: new Map(bars.map(({ id, ms }) => [id, ms])),
          },
        ];
  });
  const timeline = scope ?? operators;
  if (times.length > 0 || !timeline) return times;
  const rows = await timeline.database.query<{ kind: WaterfallKind; instances: number; time_ms: number }>(
    `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS time_ms FROM windows
     WHERE kind <> 'sampling' GROUP BY kind`,
  );
  return rows.map((row) => ({
    ...row,
    low_ms: row.time_ms,
    ...workOf(facts, row.kind, row.time_ms),
    bars: new Map(),
  }));
}
