import type { SessionDatabase } from '../../session/query.js';

/** Columns of `requests` that the analysis of one load level reads. */
export interface RequestRow {
  scheduled_ns: number;
  sent_ns: number | null;
  first_token_ns: number | null;
  end_ns: number | null;
  ttft_ns: number | null;
  tpot_ns: number | null;
  itl_ns: string | null;
  itl_split: boolean | null;
  input_tokens: number | null;
  output_tokens: number | null;
  requested_output_tokens: number | null;
  tokenizer_output_tokens: number | null;
  cached_tokens: number | null;
  status: string;
  error: string | null;
  warmup: boolean | null;
}

const columns: (keyof RequestRow)[] = [
  'scheduled_ns',
  'sent_ns',
  'first_token_ns',
  'end_ns',
  'ttft_ns',
  'tpot_ns',
  'itl_ns',
  'itl_split',
  'input_tokens',
  'output_tokens',
  'requested_output_tokens',
  'tokenizer_output_tokens',
  'cached_tokens',
  'status',
  'error',
  'warmup',
];

/** Requests of one execution in due order. */
export function readRequestRows(database: SessionDatabase, executionId: string): Promise<RequestRow[]> {
  return database.query<RequestRow>(
    `SELECT ${columns.join(', ')} FROM requests WHERE execution_id = $1 ORDER BY scheduled_ns, sent_ns`,
    [executionId],
  );
}

/** Largest value and growth of each of the server's metrics that were recorded during an execution. */
export async function readServerSeries(
  database: SessionDatabase,
  executionId: string,
): Promise<Map<string, { max: number; grown: number }>> {
  const rows = await database.query<{ metric: string; max: number; grown: number }>(
    `SELECT metric, max(value) AS max, max(value) - min(value) AS grown FROM telemetry
     WHERE execution_id = $1 AND scope = 'server' GROUP BY metric`,
    [executionId],
  );
  return new Map(rows.map(({ metric, max, grown }) => [metric, { max, grown }]));
}
