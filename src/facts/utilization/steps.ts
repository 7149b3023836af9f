import { stepKinds } from '../../model/record.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeStageSizes, sizeColumns } from '../trace/known-sizes.js';

/**
 * One prefill, decode or mixed step with its window and its sizes, which are over the batch and null if not reported.
 */
export interface Step {
  stage_id: number;
  /** The process, which is the unit of the interval. */
  pid: number;
  kind: PhaseKind;
  point: string | null;
  iteration: number | null;
  step_index: number | null;
  wall_ns: number;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  /** Source of the sizes; null if unknown. */
  sizes_from: string | null;
  /** Number of steps of this kind in the capture. */
  steps_here: number | null;
  /** Number of steps in the capture that has sizes, where it differs and they could not be matched; otherwise null. */
  steps_elsewhere: number | null;
}

/** A step recorded by the engine. */
export interface RecordedStep extends Step {
  /** Process launch; null if its repeat did not complete. */
  launch: number | null;
  /** Time between device events around the step; null if the engine records none. */
  device_ms: number | null;
  /** Whether `wall_ns` is on the device clock: from the event at its start to that of the next step. */
  by_device: boolean;
}

const followedSql = `s.kind IN ('decode', 'mixed') AND next_kind IN ('decode', 'mixed') AND next_iteration IS NOT DISTINCT FROM s.iteration`;

/**
 * Timed steps of an execution in order, by device events if the program's hooks recorded them, else by host ranges. A
 * decode or mixed step runs from its start to the start of the next one of its thread and iteration. The last step runs
 * to its own end, or with `toIterationEnd` to the end of the iteration if `iterations` has it
 * (docs/concepts/stages-and-clocks.md). Other `kinds` end with their range.
 */
export async function readRecordedSteps(
  database: SessionDatabase,
  executionId: string,
  {
    rank = null,
    toIterationEnd = false,
    kinds = stepKinds,
  }: { rank?: number | null; toIterationEnd?: boolean; kinds?: readonly PhaseKind[] } = {},
): Promise<RecordedStep[]> {
  await makeStageSizes(database);
  return database.query<RecordedStep>(
    `WITH step_rows AS (
       SELECT *, lead(start_ns) OVER thread AS next_ns, lead(kind) OVER thread AS next_kind,
              lead(iteration) OVER thread AS next_iteration, lead(device_start_ns) OVER thread AS next_device_ns,
              device_start_ns IS NOT NULL AND device_dur_ns IS NOT NULL AS by_device
       FROM stages WHERE execution_id = $1 AND NOT coalesce(warmup, false) AND kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')})
         AND ${rank === null ? 'rank IS NULL' : `coalesce(rank, 0) = ${rank}`}
       WINDOW thread AS (PARTITION BY pid, tid ORDER BY start_ns))
     SELECT s.stage_id, s.pid, s.kind, i.point, s.iteration, s.step_index, ${sizeColumns}, i.launch, s.device_dur_ns / 1e6 AS device_ms, by_device,
            CASE WHEN by_device THEN CASE WHEN ${followedSql} THEN coalesce(next_device_ns - s.device_start_ns, s.device_dur_ns) ELSE s.device_dur_ns END
                 WHEN ${followedSql} THEN next_ns - s.start_ns
                 WHEN ${toIterationEnd} AND s.kind = 'decode' THEN coalesce(i.end_ns, s.end_ns) - s.start_ns
                 ELSE s.end_ns - s.start_ns END AS wall_ns
     FROM step_rows s LEFT JOIN stage_sizes k USING (execution_id, capture_id, stage_id)
     LEFT JOIN (SELECT pid, iteration, any_value(point) AS point, any_value(launch) AS launch, max(end_ns) AS end_ns FROM iterations
       WHERE execution_id = $1 GROUP BY ALL) i ON i.pid = s.pid AND i.iteration = s.iteration
     ORDER BY s.pid, s.start_ns`,
    [executionId],
  );
}

/** Decode steps of completed repeats, on the first rank. */
export async function readDecodeSteps(
  database: SessionDatabase,
  executionId: string,
): Promise<(RecordedStep & { launch: number; step_index: number })[]> {
  const steps = await readRecordedSteps(database, executionId, { rank: 0, toIterationEnd: true });
  return steps.flatMap((step) => {
    const { kind, launch, step_index } = step;
    return kind === 'decode' && launch !== null && step_index !== null
      ? [{ ...step, launch, step_index }]
      : [];
  });
}
