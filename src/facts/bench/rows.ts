import type { PointOutcome } from '../../model/bench.js';
import type { SessionDatabase } from '../../session/query.js';
import { readDecodeSteps } from '../utilization/steps.js';

/** A repeat of one request or batch. */
export interface RepeatRow {
  iteration: number;
  launch: number;
  warmup: boolean;
  batch_size: number;
  input_len: number;
  output_len: number;
  ttft_ns: number;
  tpot_ns: number | null;
  e2e_ns: number;
}

export interface IterationRow extends RepeatRow {
  point: string;
}

export interface PointRow {
  point: string;
  launch: number;
  outcome: PointOutcome;
  text: string | null;
  warmup_iterations: number | null;
  stable: boolean | null;
  interleaved: boolean | null;
  memory_bytes: number | null;
  memory_source: string | null;
}

export interface DeviceWorkRow {
  point: string;
  launch: number;
  kind: string;
  stages: number;
  kernels: number;
  kernel_ns: number;
  busy_ns: number;
}

/** Device time of the prefill of one timed repeat. */
interface PrefillRow {
  point: string;
  launch: number;
  device_ms: number;
}

/** Peak memory of a kind during a point's timed repeats; device null is the host. */
export interface MemoryRow {
  point: string;
  device: number | null;
  kind: string;
  bytes: number;
}

/** Rows of one variant (an execution), from the first rank; memory is of all ranks. */
export interface BenchRows {
  iterations: IterationRow[];
  points: PointRow[];
  steps: Awaited<ReturnType<typeof readDecodeSteps>>;
  prefills: PrefillRow[];
  work: DeviceWorkRow[];
  memory: MemoryRow[];
}

/** Repeats of an execution in order, from the first rank. */
export const readRepeatRows = (
  database: SessionDatabase,
  executionId: string,
): Promise<(RepeatRow & { point: string | null })[]> =>
  database.query(
    `SELECT point, iteration, launch, coalesce(warmup, false) AS warmup, batch_size, input_len, output_len, ttft_ns, tpot_ns,
            end_ns - start_ns AS e2e_ns
     FROM iterations WHERE execution_id = $1 AND coalesce(rank, 0) = 0 ORDER BY start_ns`,
    [executionId],
  );

export async function readBenchRows(database: SessionDatabase, executionId: string): Promise<BenchRows> {
  const executionRows = <T extends object>(sql: string) => database.query<T>(sql, [executionId]);
  const firstRank = `execution_id = $1 AND coalesce(rank, 0) = 0`;
  return {
    iterations: (await readRepeatRows(database, executionId)).flatMap((row) =>
      row.point === null ? [] : [{ ...row, point: row.point }],
    ),
    points: await executionRows(
      `SELECT point, launch, outcome, text, warmup_iterations, stable, interleaved, memory_bytes, memory_source
       FROM points WHERE ${firstRank} ORDER BY launch`,
    ),
    steps: await readDecodeSteps(database, executionId),
    prefills: await executionRows(
      `SELECT i.point, i.launch, sum(s.device_dur_ns) / 1e6 AS device_ms
       FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
       WHERE s.execution_id = $1 AND s.kind = 'prefill' AND NOT s.warmup AND s.device_dur_ns IS NOT NULL
         AND coalesce(i.rank, 0) = 0
       GROUP BY i.point, i.launch, s.pid, s.iteration ORDER BY s.iteration`,
    ),
    work: await executionRows(
      `SELECT point, launch, kind, stages, kernels, kernel_ns, busy_ns FROM device_work
       WHERE ${firstRank} AND stages > 0 ORDER BY launch`,
    ),
    memory: await executionRows(
      `SELECT i.point, m.device, m.kind, max(m.bytes) AS bytes
       FROM memory m JOIN iterations i ON m.execution_id = i.execution_id AND NOT i.warmup AND m.t_ns BETWEEN i.start_ns AND i.end_ns
       WHERE m.execution_id = $1 AND m.kind IN ('used', 'rss') AND i.point IS NOT NULL GROUP BY ALL`,
    ),
  };
}
