import { gapParts } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import { cutColumns, cutKey, cutTimes } from './cut-activities.js';
import { copyGroups, edgeSums, kernelGroups } from './window-sums.js';

/** Rows of a table inside inner windows, which may overlap: each is cut at the window's edges. */
const within = (table: string, windows: string): string => `${table} a JOIN ${windows} w
       ON a.start_ns < w.end_ns AND a.start_ns + a.dur_ns > w.start_ns`;

/**
 * SQL of (stage_id, groups …, earlier, ns, n). earlier: launched before the window began, by the host's clock: another
 * stage's work, which this one waits for.
 */
export function activitiesInside(
  table: 'kernels' | 'copies',
  groups: Record<string, string>,
  windows = 'inner_windows',
  where = 'true',
): string {
  const columns = Object.entries(groups).map(([name, sql]) => `${sql} AS ${name}`);
  const names = Object.keys(groups).join(', ');
  const rows = `(SELECT start_ns, dur_ns, coalesce(exclusive_ns, 0) AS exclusive_ns, api_start_ns, ${cutColumns(table, 't')}, ${columns.join(', ')} FROM own_${table} t WHERE ${where})`;
  return `WITH part AS MATERIALIZED (
      SELECT w.stage_id, ${names}, coalesce(a.api_start_ns < w.host_ns, false) AS earlier, a.start_ns >= w.start_ns AS begun, exclusive_ns, ${cutKey},
        greatest(w.start_ns, e_start) AS from_ns, least(w.end_ns, e_end) AS to_ns, w.start_ns > e_start OR w.end_ns < e_end AS is_cut
      FROM ${within(rows, windows)}),
    cuts AS (SELECT * FROM part WHERE is_cut)
    SELECT stage_id, ${names}, earlier, sum(CASE WHEN is_cut THEN cut_ns ELSE exclusive_ns END)::DOUBLE AS ns, count_if(begun)::DOUBLE AS n
    FROM part LEFT JOIN (${cutTimes('cuts', 'exclusive_ns')}) USING (${cutKey}, from_ns, to_ns) GROUP BY ALL`;
}

/** SQL of (stage_id, parts of gaps …, n_ parts: gaps that have some of it), cut part by part. */
export function gapsInside(windows = 'inner_windows', table = 'own_gaps'): string {
  const clipped = gapParts.map((part, i) => {
    const start = ['a.start_ns', ...gapParts.slice(0, i).map((one) => `a.${one}`)].join(' + ');
    return `greatest(0, least(w.end_ns, ${start} + a.${part}) - greatest(w.start_ns, ${start})) AS ${part}`;
  });
  const own = gapParts.map((part) => `coalesce(${part}_ns, 0) AS ${part}`);
  const sums = gapParts.map(
    (part) => `sum(${part})::DOUBLE AS ${part}, count_if(${part} > 0)::DOUBLE AS n_${part}`,
  );
  return `SELECT stage_id, ${sums.join(', ')} FROM (
       SELECT w.stage_id, ${clipped.join(', ')}
       FROM ${within(`(SELECT start_ns, dur_ns, ${own.join(', ')} FROM ${table})`, windows)}) GROUP BY stage_id`;
}

/**
 * Makes inner_kernels, inner_copies and inner_idle, as makeWindowSums does of steps. Kernels of earlier stages are in
 * device_dependency, and by class in inner_earlier. Needs `inner_windows`.
 */
export async function makeInnerSums(scope: TraceScope): Promise<void> {
  const { database } = scope;
  const [span] = await database.query<{ from_ns: number | null; until_ns: number | null }>(
    'SELECT min(start_ns) AS from_ns, max(end_ns) AS until_ns FROM inner_windows',
  );
  // Only what may lie in a window: file statistics answer it.
  const near = `start_ns < ${span?.until_ns ?? 0} AND start_ns + dur_ns > ${span?.from_ns ?? 0}`;
  await database.query(
    `CREATE TEMP TABLE inner_kernels AS ${activitiesInside('kernels', kernelGroups, 'inner_windows', near)}`,
  );
  await database.query(
    `CREATE TEMP TABLE inner_copies AS ${activitiesInside('copies', copyGroups, 'inner_windows', near)}`,
  );
  const parts = gapParts.map((part) =>
    part === 'device_dependency'
      ? 'coalesce(g.device_dependency, 0) + coalesce(e.ns, 0) AS device_dependency'
      : `coalesce(g.${part}, 0) AS ${part}`,
  );
  await database.query(
    `CREATE TEMP TABLE inner_idle AS
     SELECT w.stage_id, ${parts.join(', ')}, ${gapParts.map((part) => `coalesce(n_${part}, 0) AS n_${part}`).join(', ')}, edge.start_up, edge.shut_down
     FROM inner_windows w JOIN (${edgeSums(scope, 'inner_windows', 'gap_span')}) edge USING (stage_id)
     LEFT JOIN (${gapsInside('inner_windows', `(SELECT * FROM own_gaps WHERE ${near})`)}) g USING (stage_id)
     LEFT JOIN (SELECT stage_id, sum(ns) AS ns FROM inner_kernels WHERE earlier GROUP BY stage_id) e USING (stage_id)`,
  );
}
