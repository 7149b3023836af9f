import type { Evidence } from '../../model/documents/explain.js';
import type { FindingContext } from './rule.js';
import { plural } from './words.js';

/** Fewer samples of a queue may all be from its start. */
const minSamples = 10;

/** Requests that wait because an engine already runs as many as it admits. Both are medians while it decodes. */
export interface WaitingRequests {
  running: number;
  waiting: number;
  evidence: Evidence;
}

const waitingSql = `SELECT execution_id, running, waiting, samples FROM (
       SELECT t.execution_id, count(*) FILTER (WHERE metric = 'requests_waiting') AS samples,
         median(value) FILTER (WHERE metric = 'requests_running') AS running, median(value) FILTER (WHERE metric = 'requests_waiting') AS waiting
       FROM telemetry t JOIN (
         SELECT execution_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM stages WHERE kind = 'decode' AND NOT warmup GROUP BY execution_id
       ) decode ON t.execution_id = decode.execution_id AND t.t_ns BETWEEN decode.start_ns AND decode.end_ns
       WHERE t.scope = 'engine' GROUP BY t.execution_id)
     WHERE samples >= ${minSamples} ORDER BY samples DESC`;

/** Null where no queue was recorded, nothing waits, or something other than `max_num_seqs` limits what runs. */
export async function waitingRequests(context: FindingContext): Promise<WaitingRequests | null> {
  const limit = context.manifest.workload?.model?.facts?.max_num_seqs ?? null;
  if (limit === null) return null;
  const { rows, evidence } = await context.evidence<{
    execution_id: string;
    running: number;
    waiting: number;
    samples: number;
  }>(waitingSql, ([row]) =>
    row
      ? `in the decode steps ${row.running} requests run and ${plural(row.waiting, 'request')} wait (medians of ${plural(row.samples, 'sample')}); max_num_seqs is ${limit}`
      : 'no queue was recorded',
  );
  const row = rows[0];
  return row && row.waiting > 0 && row.running === limit ? { ...row, evidence } : null;
}
