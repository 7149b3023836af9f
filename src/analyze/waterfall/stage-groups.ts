import type { PhaseKind } from '../../model/documents/trace.js';
import { literal, type TraceScope } from '../trace/scope.js';
import type { PhaseClock } from '../trace/windows.js';
import { innerGroups, innerWindowsSql } from './inner-windows.js';
import { requestPartsSql, requestReason } from './requests.js';
import type { StageGroup } from './stage-group.js';

/** Windows of phases that have a waterfall; sampling lies inside steps. */
const stepKinds: ReadonlySet<PhaseKind> = new Set([
  'decode',
  'mixed',
  'prefill',
  'load',
  'warmup',
  'outside',
  'other',
]);

/**
 * Makes the tables of what has a waterfall: `step_windows` (windows of phases, and between the steps of a request),
 * `inner_windows`, `spans` (grp, instance, label, start_ns, end_ns: one row an instance) and `members` (grp, instance,
 * stage_id: the windows an instance is made of). Needs `windows`.
 */
export async function makeGroups(
  scope: TraceScope,
  clocks: readonly PhaseClock[],
): Promise<{ groups: StageGroup[]; without: { stage: string; reason: string }[] }> {
  const { database } = scope;
  const steps = clocks
    .filter(({ kind }) => stepKinds.has(kind))
    .map(({ kind, clock, why }): StageGroup => ({ key: kind, kind, name: null, level: 'steps', clock, why }));
  const asked = requestReason(clocks) === null;
  await database.query(
    `CREATE TEMP TABLE request_parts AS ${asked ? requestPartsSql : 'SELECT NULL::BIGINT AS request_id, NULL::BIGINT AS stage_id, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns WHERE false'}`,
  );
  const reason = asked ? await requestReasonOfSizes(scope) : requestReason(clocks);
  const withRequests = reason === null;
  if (asked && !withRequests) await database.query('DELETE FROM request_parts');
  await database.query(`CREATE TEMP TABLE step_windows AS ${stepWindowsSql}`);
  const inner = await innerGroups(scope, clocks);
  await database.query(
    `CREATE TEMP TABLE inner_windows AS ${
      inner.length === 0
        ? "SELECT '' AS grp, NULL::BIGINT AS stage_id, '' AS label, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns, NULL::BIGINT AS host_ns WHERE false"
        : inner.map((group) => innerWindowsSql(group, scope.source)).join(' UNION ALL ')
    }`,
  );
  const label = `CASE WHEN step_index IS NULL THEN coalesce(raw_name, kind) ELSE kind || ' ' || step_index END`;
  const kinds = steps.map(({ kind }) => `'${kind}'`).join(', ') || 'NULL';
  await database.query(
    `CREATE TEMP TABLE spans AS
     SELECT kind AS grp, stage_id AS instance, ${label} AS label, start_ns, end_ns FROM windows WHERE kind IN (${kinds})
     UNION ALL SELECT 'request', request_id, 'request ' || (row_number() OVER (ORDER BY start_ns) - 1), start_ns, end_ns
       FROM (SELECT request_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM request_parts GROUP BY request_id)
     UNION ALL SELECT grp, stage_id, label, start_ns, end_ns FROM inner_windows`,
  );
  await database.query(
    `CREATE TEMP TABLE members AS
     SELECT kind AS grp, stage_id AS instance, stage_id FROM windows WHERE kind IN (${kinds})
     UNION ALL SELECT 'request', request_id, stage_id FROM request_parts
     UNION ALL SELECT grp, stage_id, stage_id FROM inner_windows`,
  );
  const prefill = clocks.find(({ kind }) => kind === 'prefill');
  const requests: StageGroup[] = withRequests
    ? [
        {
          key: 'request',
          kind: 'request',
          name: null,
          level: 'request',
          clock: prefill?.clock ?? 'host',
          why: `from the begin of a prefill to the end of the last step before the next one; as its steps: ${prefill?.why ?? ''}`,
        },
      ]
    : [];
  const filled = await database.query<{ grp: string }>('SELECT DISTINCT grp FROM spans');
  const has = ({ key }: StageGroup) => filled.some(({ grp }) => grp === key);
  const without: { stage: string; reason: string }[] = [];
  if (reason !== null && reason !== '') without.push({ stage: 'request', reason });
  if (withRequests && !has(requests[0]!)) {
    without.push({ stage: 'request', reason: 'no prefill of the capture is followed by a decode step' });
  }
  return { groups: [...steps, ...requests, ...inner].filter(has), without };
}

/** Windows of the level of steps: they do not overlap. */
export const stepWindowsSql = `SELECT kind, stage_id, start_ns, end_ns FROM windows WHERE kind <> 'sampling'
     UNION ALL SELECT 'between', stage_id, start_ns, end_ns FROM request_parts WHERE stage_id < 0`;

/** Steps of more sequences than the prefill had serve several requests. */
async function requestReasonOfSizes({ database, source }: TraceScope): Promise<string | null> {
  const { execution_id, capture_id } = source.attribution;
  const [row] = await database.query<{ grown: number }>(
    `WITH sized AS (
       SELECT r.request_id, max(s.batch_size) FILTER (s.kind = 'prefill') AS prompts, max(s.batch_size) FILTER (s.kind = 'decode') AS sequences
       FROM request_parts r JOIN stages s USING (stage_id)
       WHERE s.execution_id = ${literal(execution_id)} AND s.capture_id = ${literal(capture_id)} AND s.batch_size IS NOT NULL GROUP BY r.request_id)
     SELECT count_if(sequences > prompts) AS grown FROM sized`,
  );
  return (row?.grown ?? 0) > 0
    ? 'steps serve several requests at once (continuous batching): no stretch of the timeline is one request'
    : null;
}
