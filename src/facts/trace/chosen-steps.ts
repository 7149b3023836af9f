import type { OpClass } from '../../model/classes.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

/** Selects a step of a kind: the median or slowest one, or the nth in time order, from 1. */
export type StepChoice = 'median' | 'slowest' | number;

/** A step of a kind and its events; times in ns from its start. */
export interface ChosenStep {
  kind: PhaseKind;
  /** Number in time order, from 1, and the number of steps. */
  nth: number;
  count: number;
  /** ns since the session's start. */
  start_ns: number;
  dur_ns: number;
  kernels: StepEvent[];
  calls: StepEvent[];
  /** Number of kernels and calls after the first `maxEvents` of each. */
  left_out: number;
}

export interface StepEvent {
  name: string;
  /** Tile of a GEMM; null if the name does not show it. */
  tile: string | null;
  /** Null for a call. */
  class: OpClass | null;
  start_ns: number;
  dur_ns: number;
}

/** Maximum events of each kind. */
const maxEvents = 4000;

/** The selected step of each kind; kinds with fewer steps are left out. */
export async function readChosenSteps(
  { database, need }: TraceScope,
  choice: StepChoice,
): Promise<ChosenStep[]> {
  await need('windows', 'rank_kernels', 'rank_api');
  const stepCondition =
    choice === 'median' ? 'place = (n + 1) // 2' : choice === 'slowest' ? 'place = n' : `nth = ${choice}`;
  const steps = await database.query<{
    kind: PhaseKind;
    start_ns: number;
    end_ns: number;
    nth: number;
    n: number;
  }>(
    `SELECT kind, start_ns, end_ns, nth, n FROM (
       SELECT kind, start_ns, end_ns, row_number() OVER by_duration AS place, count(*) OVER (PARTITION BY kind) AS n,
              row_number() OVER (PARTITION BY kind ORDER BY start_ns, end_ns) AS nth
       FROM windows WHERE kind IN ('prefill', 'decode', 'mixed', 'training') AND end_ns > start_ns
       WINDOW by_duration AS (PARTITION BY kind ORDER BY end_ns - start_ns, start_ns))
     WHERE ${stepCondition} ORDER BY start_ns`,
  );
  const chosen: ChosenStep[] = [];
  for (const { kind, start_ns, end_ns, nth, n: stepCount } of steps) {
    const inside = (table: string, columns: string): Promise<(StepEvent & { n: number })[]> =>
      database.query(
        `SELECT ${columns}, greatest(start_ns, $1) - $1 AS start_ns,
                least(start_ns + dur_ns, $2) - greatest(start_ns, $1) AS dur_ns, count(*) OVER () AS n
         FROM ${table} WHERE start_ns < $2 AND start_ns + dur_ns > $1 ORDER BY start_ns LIMIT ${maxEvents}`,
        [start_ns, end_ns],
      );
    const kernels = await inside('rank_kernels', "coalesce(name, short_name, '') AS name, tile, class");
    const calls = await inside('rank_api', "coalesce(name, '') AS name, NULL AS tile, NULL AS class");
    const leftOut = (rows: readonly { n: number }[]): number => (rows[0]?.n ?? 0) - rows.length;
    const left_out = leftOut(kernels) + leftOut(calls);
    chosen.push({
      kind,
      nth,
      count: stepCount,
      start_ns,
      dur_ns: end_ns - start_ns,
      kernels,
      calls,
      left_out,
    });
  }
  return chosen;
}
