import { gapParts } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import { copyGroups, edgeSums, kernelGroups } from './window-sums.js';

/** Rows of a table inside inner windows, which may overlap: each is cut at the window's edges, in proportion. */
const within = (table: string, windows: string): string => `${table} a JOIN ${windows} w
       ON a.start_ns < w.end_ns AND a.start_ns + a.dur_ns > w.start_ns`;

const share =
  '(least(w.end_ns, a.start_ns + a.dur_ns) - greatest(w.start_ns, a.start_ns)) / greatest(a.dur_ns, 1)';

/**
 * SQL of (stage_id, groups …, earlier, ns, n). earlier: launched before the window began, by the host's clock: another
 * stage's work, which this one waits for.
 */
export function activitiesInside(
  table: string,
  groups: Record<string, string>,
  windows = 'inner_windows',
): string {
  const columns = Object.entries(groups).map(([name, sql]) => `${sql} AS ${name}`);
  const names = Object.keys(groups).join(', ');
  return `SELECT stage_id, ${names}, earlier, sum(part)::DOUBLE AS ns, count_if(begun)::DOUBLE AS n FROM (
       SELECT w.stage_id, ${names}, coalesce(a.api_start_ns < w.host_ns, false) AS earlier, a.exclusive_ns * ${share} AS part, a.start_ns >= w.start_ns AS begun
       FROM ${within(`(SELECT start_ns, dur_ns, coalesce(exclusive_ns, 0) AS exclusive_ns, api_start_ns, ${columns.join(', ')} FROM ${table})`, windows)})
     GROUP BY ALL`;
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
  const near = (table: string) =>
    `(SELECT * FROM ${table} WHERE start_ns < ${span?.until_ns ?? 0} AND start_ns + dur_ns > ${span?.from_ns ?? 0})`;
  await database.query(
    `CREATE TEMP TABLE inner_kernels AS ${activitiesInside(near('own_kernels'), kernelGroups)}`,
  );
  await database.query(
    `CREATE TEMP TABLE inner_copies AS ${activitiesInside(near('own_copies'), copyGroups)}`,
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
     LEFT JOIN (${gapsInside('inner_windows', near('own_gaps'))}) g USING (stage_id)
     LEFT JOIN (SELECT stage_id, sum(ns) AS ns FROM inner_kernels WHERE earlier GROUP BY stage_id) e USING (stage_id)`,
  );
}
