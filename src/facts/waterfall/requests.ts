import { stepKindsSql } from '../../model/record.js';
import { literal, type TraceScope } from '../trace/scope.js';
import { type PhaseClock, windowClocks } from '../trace/windows.js';

/**
 * SQL of the steps of each request (request_id, stage_id, start_ns, end_ns), from `windows` and `instances`: a prefill
 * and the decode steps after it, of one thread and iteration, up to the next prefill. Consecutive prefills are chunks
 * of one prompt. request_id is the stage_id of the first.
 */
const requestsSql = `WITH step AS (
       SELECT w.kind, w.stage_id, w.iteration, w.start_ns, w.end_ns, i.pid, i.tid, lag(w.kind) OVER thread AS previous_kind,
         coalesce(w.iteration <> lag(w.iteration) OVER thread, false) AS new_iteration
       FROM windows w JOIN instances i USING (stage_id) WHERE w.kind IN ${stepKindsSql}
       WINDOW thread AS (PARTITION BY i.pid, i.tid ORDER BY w.start_ns, w.stage_id)),
     numbered AS (
       SELECT *, sum(CASE WHEN new_iteration OR (kind = 'prefill' AND previous_kind IS DISTINCT FROM 'prefill') THEN 1 ELSE 0 END)
         OVER (PARTITION BY pid, tid ORDER BY start_ns, stage_id) AS nth FROM step)
     SELECT first_value(stage_id) OVER request AS request_id, stage_id, start_ns, end_ns
     FROM numbered WINDOW request AS (PARTITION BY pid, tid, nth ORDER BY start_ns, stage_id)
     QUALIFY first_value(kind) OVER request = 'prefill'
       AND count_if(kind = 'decode') OVER (PARTITION BY pid, tid, nth) > 0`;

/** The steps of each request, and the time between two steps as a separate window with the negative id of the later step. */
const requestPartsSql = `WITH of_request AS (${requestsSql}),
     with_previous AS (
       SELECT *, max(end_ns) OVER (PARTITION BY request_id ORDER BY start_ns, stage_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end_ns
       FROM of_request)
     SELECT request_id, stage_id, start_ns, end_ns FROM of_request
     UNION ALL SELECT request_id, -stage_id, previous_end_ns, start_ns FROM with_previous WHERE start_ns > previous_end_ns`;

/** SQL of request_parts; no rows if the timeline has no single requests. */
export const requestPartsOf = async (scope: TraceScope): Promise<string> =>
  (await requestReason(scope)) === null
    ? requestPartsSql
    : 'SELECT NULL::BIGINT AS request_id, NULL::BIGINT AS stage_id, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns WHERE false';

const reasons = new WeakMap<TraceScope, Promise<string | null>>();

/** Why the timeline has no single requests: null if it has some, '' if users do not expect any. */
export function requestReason(scope: TraceScope): Promise<string | null> {
  const reason = reasons.get(scope) ?? readReason(scope);
  reasons.set(scope, reason);
  return reason;
}

async function readReason(scope: TraceScope): Promise<string | null> {
  const reason = reasonOfPhases(await windowClocks(scope));
  if (reason !== null) return reason;
  await scope.need('windows', 'instances');
  return reasonOfSizes(scope);
}

function reasonOfPhases(clocks: readonly PhaseClock[]): string | null {
  const hasKind = (kind: string) => clocks.some((clock) => clock.kind === kind);
  if (hasKind('mixed')) {
    return 'mixed steps serve several requests at once (continuous batching): no part of the timeline is a single request';
  }
  return hasKind('prefill') && hasKind('decode') ? null : '';
}

/** Decode steps with more sequences than the prefill serve several requests. */
async function reasonOfSizes({ database, source }: TraceScope): Promise<string | null> {
  const { execution_id, capture_id } = source.attribution;
  const [row] = await database.query<{ batched_requests: number }>(
    `WITH sized AS (
       SELECT r.request_id, max(s.batch_size) FILTER (s.kind = 'prefill') AS prompts, max(s.batch_size) FILTER (s.kind = 'decode') AS sequences
       FROM (${requestPartsSql}) r JOIN stages s USING (stage_id)
       WHERE s.execution_id = ${literal(execution_id)} AND s.capture_id = ${literal(capture_id)} AND s.batch_size IS NOT NULL GROUP BY r.request_id)
     SELECT count_if(sequences > prompts) AS batched_requests FROM sized`,
  );
  return (row?.batched_requests ?? 0) > 0
    ? 'decode steps have more sequences than the prefill before them (continuous batching or beam search): which belong to one request is not known'
    : null;
}
