import { stepKinds } from '../../model/record.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeStageSizes, sizeColumns } from '../trace/known-sizes.js';

/**
 * A step, or another timed stage, with its time and its sizes, which are over the batch and null if neither reported nor
 * inferred (makeStageSizes).
 */
export interface Step {
  stage_id: number;
  /** Process; utilization and clean times of a trace count it as the launch in their intervals. */
  pid: number;
  kind: PhaseKind;
  point: string | null;
  iteration: number | null;
  step_index: number | null;
  wall_ns: number;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  /** Tokens per sequence of the encoder's output, if the model has an encoder; null if not known. */
  source_tokens?: number | null;
  /** Sources of the sizes; null without sizes. */
  sizes_from: string | null;
  /** Number of steps of this kind in the capture. */
  steps_here: number | null;
  /** Number of steps in the capture that has sizes, where it differs and they could not be matched; otherwise null. */
  steps_elsewhere: number | null;
}

/** A step recorded by the engine. */
export interface RecordedStep extends Step {
  /** Process launch; null without an iteration, or if its repeat did not complete. */
  launch: number | null;
  /** Time between device events around the step; null if the engine records none. */
  device_ms: number | null;
  /** Whether `wall_ns` is between device events. */
  by_device: boolean;
}

const isLastSql = 'next_ns IS NULL OR next_iteration IS DISTINCT FROM s.iteration';
const isFollowedSql = `s.kind IN ('decode', 'mixed') AND next_kind IN ('decode', 'mixed') AND NOT (${isLastSql})`;

/** Steps of models, and calls of modules without tokens that hooks recorded. */
export const callKinds = [...stepKinds, 'other'] as const satisfies readonly PhaseKind[];

/**
 * Timed steps of an execution in order, by device events if the program's hooks recorded them, else by host ranges. A
 * decode or mixed step that is followed by another one in its thread and iteration runs from its start to the start of that
 * one; other steps run to their own end (docs/concepts/stages-and-clocks.md).
 * @param rank null: stages without a rank; 0: also these
 * @param toIterationEnd a decode step on the host clock that is the last step of its iteration runs to the end of the
 *   iteration, if `iterations` has it
 * @param kinds stages that are read; other ones are not seen as following
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
       FROM stages WHERE execution_id = $1 AND NOT coalesce(warmup, false) AND kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')}) AND (kind <> 'other' OR raw_name LIKE 'inferscope:other:%')
         AND ${rank === null ? 'rank IS NULL' : `coalesce(rank, 0) = ${rank}`}
       WINDOW thread AS (PARTITION BY pid, tid ORDER BY start_ns))
     SELECT s.stage_id, s.pid, s.kind, i.point, s.iteration, s.step_index, ${sizeColumns}, i.launch, s.device_dur_ns / 1e6 AS device_ms, by_device,
            CASE WHEN by_device THEN CASE WHEN ${isFollowedSql} THEN coalesce(next_device_ns - s.device_start_ns, s.device_dur_ns) ELSE s.device_dur_ns END
                 WHEN ${isFollowedSql} THEN next_ns - s.start_ns
                 WHEN ${toIterationEnd} AND s.kind = 'decode' AND (${isLastSql}) THEN coalesce(i.end_ns, s.end_ns) - s.start_ns
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
