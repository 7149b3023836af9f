import { gapParts } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import { activitiesInside, within } from '../trace/activities-inside.js';
import { createFrom } from '../trace/stepped-query.js';
import { copyGroups, edgeSums, kernelGroups } from './window-sums.js';

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
  await createFrom(
    database,
    'inner_kernels',
    activitiesInside('kernels', kernelGroups, 'inner_windows', near),
  );
  await createFrom(database, 'inner_copies', activitiesInside('copies', copyGroups, 'inner_windows', near));
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
