import type { OpClass } from '../../model/classes.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

/** The step of a kind with the median time, and what ran in it; times in ns from its start. */
export interface MedianStep {
  kind: PhaseKind;
  /** ns since the session's start. */
  start_ns: number;
  dur_ns: number;
  kernels: StepEvent[];
  calls: StepEvent[];
  /** Kernels and calls after the first `eventsShown` of each. */
  left_out: number;
}

export interface StepEvent {
  name: string;
  /** Null of a call. */
  class: OpClass | null;
  start_ns: number;
  dur_ns: number;
}

/** Of each kind of event in a step. */
const eventsShown = 4000;

/** The median step of each kind of step. */
export async function medianSteps({ database, need }: TraceScope): Promise<MedianStep[]> {
  await need('windows', 'own_kernels', 'own_api');
  const steps = await database.query<{ kind: PhaseKind; start_ns: number; end_ns: number }>(
    `SELECT kind, start_ns, end_ns FROM (
       SELECT kind, start_ns, end_ns, row_number() OVER own AS place, count(*) OVER (PARTITION BY kind) AS n
       FROM windows WHERE kind IN ('prefill', 'decode', 'mixed', 'training') AND end_ns > start_ns
       WINDOW own AS (PARTITION BY kind ORDER BY end_ns - start_ns, start_ns))
     WHERE place = (n + 1) // 2 ORDER BY start_ns`,
  );
  const found: MedianStep[] = [];
  for (const { kind, start_ns, end_ns } of steps) {
    const inside = (table: string, name: string, opClass: string): Promise<(StepEvent & { n: number })[]> =>
      database.query(
        `SELECT coalesce(${name}, '') AS name, ${opClass} AS class, greatest(start_ns, $1) - $1 AS start_ns,
                least(start_ns + dur_ns, $2) - greatest(start_ns, $1) AS dur_ns, count(*) OVER () AS n
         FROM ${table} WHERE start_ns < $2 AND start_ns + dur_ns > $1 ORDER BY start_ns LIMIT ${eventsShown}`,
        [start_ns, end_ns],
      );
    const kernels = await inside('own_kernels', 'short_name', 'class');
    const calls = await inside('own_api', 'name', 'NULL');
    const beyond = (rows: readonly { n: number }[]): number => (rows[0]?.n ?? 0) - rows.length;
    const left_out = beyond(kernels) + beyond(calls);
    found.push({ kind, start_ns, dur_ns: end_ns - start_ns, kernels, calls, left_out });
  }
  return found;
}
