import { stepsLevel } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import { windowClocks } from '../trace/windows.js';
import { innerGroups } from './inner-windows.js';
import { requestReason } from './requests.js';
import type { StageGroup } from './stage-group.js';

/** Windows of steps and of the time between them: they do not overlap. */
export const stepWindowsSql = `SELECT kind, stage_id, start_ns, end_ns FROM windows WHERE ${stepsLevel}
     UNION ALL SELECT 'between', stage_id, start_ns, end_ns FROM request_parts WHERE stage_id < 0`;

/** One row per instance of a group. */
export const spansSql = `SELECT kind AS grp, stage_id AS instance, CASE WHEN step_index IS NULL THEN coalesce(raw_name, kind) ELSE kind || ' ' || step_index END AS label, start_ns, end_ns
       FROM windows WHERE ${stepsLevel}
     UNION ALL SELECT 'request', request_id, 'request ' || (row_number() OVER (ORDER BY start_ns) - 1), start_ns, end_ns
       FROM (SELECT request_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM request_parts GROUP BY request_id)
     UNION ALL SELECT grp, stage_id, label, start_ns, end_ns FROM inner_windows`;

/** The windows of each instance. */
export const membersSql = `SELECT kind AS grp, stage_id AS instance, stage_id FROM windows WHERE ${stepsLevel}
     UNION ALL SELECT 'request', request_id, stage_id FROM request_parts
     UNION ALL SELECT grp, stage_id, stage_id FROM inner_windows`;

/** The groups with a waterfall, and why a stage that a reader may expect has none. */
export async function stageGroups(
  scope: TraceScope,
): Promise<{ groups: StageGroup[]; withoutWaterfall: { stage: string; reason: string }[] }> {
  const { database } = scope;
  const clocks = await windowClocks(scope);
  const steps = clocks
    .filter(({ kind }) => kind !== 'sampling')
    .map(({ kind, clock, clockWhy }): StageGroup => ({
      key: kind,
      kind,
      name: null,
      level: 'steps',
      clock,
      clockWhy,
    }));
  await scope.need('spans', 'members');
  const reason = await requestReason(scope);
  const hasRequests = reason === null;
  const inner = await innerGroups(scope);
  const prefill = clocks.find(({ kind }) => kind === 'prefill');
  const requests: StageGroup[] = hasRequests
    ? [
        {
          key: 'request',
          kind: 'request',
          name: null,
          level: 'request',
          clock: prefill?.clock ?? 'host',
          clockWhy: `from the start of a prefill to the end of the last step before the next one; clock as for its steps: ${prefill?.clockWhy ?? ''}`,
        },
      ]
    : [];
  const groupsWithSpans = await database.query<{ grp: string }>('SELECT DISTINCT grp FROM spans');
  const hasInstances = ({ key }: StageGroup) => groupsWithSpans.some(({ grp }) => grp === key);
  const withoutWaterfall: { stage: string; reason: string }[] = [];
  if (reason !== null && reason !== '') withoutWaterfall.push({ stage: 'request', reason });
  if (hasRequests && !hasInstances(requests[0]!)) {
    withoutWaterfall.push({
      stage: 'request',
      reason: 'no prefill of the capture is followed by a decode step',
    });
  }
  return { groups: [...steps, ...requests, ...inner].filter(hasInstances), withoutWaterfall };
}
