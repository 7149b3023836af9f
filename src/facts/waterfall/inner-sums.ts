import { gapParts } from '../../model/bars.js';
import { activitiesInside, overlapping } from '../trace/activities-inside.js';
import type { TraceScope } from '../trace/scope.js';
import type { SteppedQuery } from '../../session/stepped-query.js';
import { edgeSums } from './window-sums.js';

/** SQL condition: activities that may overlap an inner window. Statistics of the Parquet files skip most other rows. */
async function nearWindows({ database }: TraceScope): Promise<string> {
  const [span] = await database.query<{ from_ns: number | null; until_ns: number | null }>(
    'SELECT min(start_ns) AS from_ns, max(end_ns) AS until_ns FROM inner_windows',
  );
  return `start_ns < ${span?.until_ns ?? 0} AND start_ns + dur_ns > ${span?.from_ns ?? 0}`;
}

/** activitiesOfWindows for inner windows: kernels that an earlier stage launched are separate rows. */
export const insideWindows = async (
  scope: TraceScope,
  table: 'kernels' | 'copies',
  groups: Record<string, string>,
): Promise<SteppedQuery> => activitiesInside(table, groups, 'inner_windows', await nearWindows(scope));

/** SQL of (stage_id, gap parts in ns, n_PART: number of gaps with that part), each part cut at the window's edges. */
export async function gapsInside(scope: TraceScope): Promise<string> {
  const clipped = gapParts.map((part, i) => {
    const start = ['a.start_ns', ...gapParts.slice(0, i).map((gapPart) => `a.${gapPart}`)].join(' + ');
    return `greatest(0, least(w.end_ns, ${start} + a.${part}) - greatest(w.start_ns, ${start})) AS ${part}`;
  });
  const partColumns = gapParts.map((part) => `coalesce(${part}_ns, 0) AS ${part}`);
  const sums = gapParts.map(
    (part) => `sum(${part})::DOUBLE AS ${part}, count_if(${part} > 0)::DOUBLE AS n_${part}`,
  );
  return `SELECT stage_id, ${sums.join(', ')} FROM (
       SELECT w.stage_id, ${clipped.join(', ')}
       FROM ${overlapping(`(SELECT start_ns, dur_ns, ${partColumns.join(', ')} FROM rank_gaps WHERE ${await nearWindows(scope)})`, 'inner_windows')}) GROUP BY stage_id`;
}

/** windowIdleSql for inner windows: time of kernels that an earlier stage launched counts as device_dependency. */
export function innerIdleSql(scope: TraceScope): string {
  const parts = gapParts.map((part) =>
    part === 'device_dependency'
      ? 'coalesce(g.device_dependency, 0) + coalesce(e.ns, 0) AS device_dependency'
      : `coalesce(g.${part}, 0) AS ${part}`,
  );
  return `SELECT w.stage_id, ${parts.join(', ')}, ${gapParts.map((part) => `coalesce(n_${part}, 0) AS n_${part}`).join(', ')}, edge.start_up, edge.shut_down
     FROM inner_windows w JOIN (${edgeSums(scope, 'inner_windows')}) edge USING (stage_id)
     LEFT JOIN inner_gaps g USING (stage_id)
     LEFT JOIN (SELECT stage_id, sum(ns) AS ns FROM inner_kernels WHERE earlier GROUP BY stage_id) e USING (stage_id)`;
}
