import { cutColumns, cutKey, cutKeys, cutTimes } from './cut-activities.js';
import type { SteppedQuery } from '../../session/stepped-query.js';

/** Rows of a table that overlap inner windows, which may overlap each other. Each row is cut at the window's edges. */
export const overlapping = (table: string, windows: string): string => `${table} a JOIN ${windows} w
       ON a.start_ns < w.end_ns AND a.start_ns + a.dur_ns > w.start_ns`;

/**
 * SQL of (stage_id, groups …, earlier, ns, n). earlier: launched before the window started on the host clock, so it is
 * work of another stage that this one waits for.
 */
export function activitiesInside(
  table: 'kernels' | 'copies',
  groups: Record<string, string>,
  windows = 'inner_windows',
  where = 'true',
): SteppedQuery {
  const columns = Object.entries(groups).map(([name, sql]) => `, ${sql} AS ${name}`);
  const names = Object.keys(groups)
    .map((name) => `, ${name}`)
    .join('');
  const rows = `(SELECT start_ns, dur_ns, coalesce(exclusive_ns, 0) AS exclusive_ns, api_start_ns, ${cutColumns(table, 't')}${columns.join('')} FROM rank_${table} t WHERE ${where})`;
  const edges = [...cutKeys, 'from_ns', 'to_ns'];
  const cut = cutTimes('sum_cuts', 'ns / activities');
  return {
    steps: {
      // Only activities cut by a window's edge keep their times. The others are summed per window and group.
      sum_groups: `SELECT stage_id${names}, earlier, is_cut, ${edges.map((edge) => `CASE WHEN is_cut THEN ${edge} END AS ${edge}`).join(', ')},
          sum(exclusive_ns)::DOUBLE AS ns, count_if(started)::DOUBLE AS n, count(*) AS activities FROM (
        SELECT w.stage_id${names}, coalesce(a.api_start_ns < w.host_ns, false) AS earlier, a.start_ns >= w.start_ns AS started, exclusive_ns, ${cutKey},
          greatest(w.start_ns, e_start) AS from_ns, least(w.end_ns, e_end) AS to_ns, w.start_ns > e_start OR w.end_ns < e_end AS is_cut
        FROM ${overlapping(rows, windows)}) GROUP BY ALL`,
      sum_cuts: 'SELECT * FROM sum_groups WHERE is_cut',
      ...cut.steps,
    },
    select: `SELECT stage_id${names}, earlier, sum(ns)::DOUBLE AS ns, sum(n)::DOUBLE AS n FROM (
      SELECT stage_id${names}, earlier, ns, n FROM sum_groups WHERE NOT is_cut
      UNION ALL SELECT stage_id${names}, earlier, activities * cut_ns, n
      FROM sum_cuts JOIN (${cut.select}) USING (${cutKey}, from_ns, to_ns)) GROUP BY ALL`,
  };
}
