import type { SessionDatabase } from '../../session/query.js';

/** One request of a load; null where a value was not recorded. */
export interface TimedRequest {
  id: string | null;
  /** Planned send time, s after the first request of the execution was sent; null without a load plan. */
  due_s: number | null;
  /** Send time, s after the first request of the execution was sent. */
  sent_s: number | null;
  ttft_ms: number | null;
  tpot_ms: number | null;
  e2e_ms: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  status: string | null;
  warmup: boolean;
}

/** Ids of the executions of a session that have requests, sorted. */
export async function readExecutionsWithRequests(database: SessionDatabase): Promise<string[]> {
  const rows = await database.query<{ execution_id: string }>(
    'SELECT DISTINCT execution_id FROM requests ORDER BY 1',
  );
  return rows.map(({ execution_id }) => execution_id);
}

/** All requests of an execution in the order in which they were sent. */
export const readRequests = (database: SessionDatabase, execution: string): Promise<TimedRequest[]> =>
  database.query<TimedRequest>(
    `SELECT request_id::VARCHAR AS id, (scheduled_ns - min(sent_ns) OVER ()) / 1e9 AS due_s, (sent_ns - min(sent_ns) OVER ()) / 1e9 AS sent_s, ttft_ns / 1e6 AS ttft_ms, tpot_ns / 1e6 AS tpot_ms,
            (end_ns - sent_ns) / 1e6 AS e2e_ms, input_tokens, output_tokens, status, coalesce(warmup, false) AS warmup
     FROM requests WHERE execution_id = $1 ORDER BY sent_ns, request_id`,
    [execution],
  );
