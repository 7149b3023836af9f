import type { SessionDatabase } from '../session/query.js';

export interface StepRow {
  iteration: number;
  launch: number;
  /** Point of a benchmark; null elsewhere. */
  point: string | null;
  step_index: number;
  /** From this step's start to the next one's; the last step to the end of the iteration (waterfall.md, W). */
  period_ms: number;
  /** The call alone. */
  call_ms: number;
  /** Between device events around the step; null where the engine sets none. */
  device_ms: number | null;
  /** Tokens attended to, over the batch. */
  context_tokens_sum: number;
}

/** Timed decode steps of an execution, in order. Host work between two steps is inside the period. */
export async function decodeSteps(database: SessionDatabase, executionId: string): Promise<StepRow[]> {
  return database.query<StepRow>(
    `SELECT s.iteration, i.launch, i.point, s.step_index, s.context_tokens_sum, s.device_dur_ns / 1e6 AS device_ms,
            (coalesce(lead(s.start_ns) OVER (PARTITION BY s.pid, s.iteration ORDER BY s.step_index), i.end_ns)
              - s.start_ns) / 1e6 AS period_ms,
            (s.end_ns - s.start_ns) / 1e6 AS call_ms
     FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
     WHERE s.execution_id = $1 AND s.kind = 'decode' AND s.step_index IS NOT NULL AND NOT s.warmup
     ORDER BY s.iteration, s.step_index`,
    [executionId],
  );
}
