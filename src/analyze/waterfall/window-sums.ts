import { edges, gapParts, gapsOfWindows, makeGapSpan, makeStepGaps, stepGaps } from '../trace/phases.js';
import { placeKey, type TraceScope } from '../trace/scope.js';
import type { PhaseClock } from '../trace/windows.js';
import { cutColumns, cutKey, cutTimes } from '../trace/cut-activities.js';
import { createFrom, type SteppedQuery } from '../trace/stepped-query.js';

/** Columns of a table that are kept apart: SQL expression by name. */
type Groups = Record<string, string>;

export const kernelGroups = { class: "coalesce(class, 'other')" } satisfies Groups;

/** htod_pageable, dtoh_pinned, dtod, memset, …: direction, and the kind of host memory where the capture tells. */
export const copyGroups = {
  kind: `lower(coalesce(kind, 'unknown')) || CASE
    WHEN kind IN ('HtoD', 'HtoH') AND src_kind IN ('pageable', 'pinned') THEN '_' || src_kind
    WHEN kind = 'DtoH' AND dst_kind IN ('pageable', 'pinned') THEN '_' || dst_kind ELSE '' END`,
} satisfies Groups;

/** Windows of phases; between the steps of a request only where makeGroups made them. */
const stepWindows = "(SELECT kind, stage_id, start_ns, end_ns FROM windows WHERE kind <> 'sampling')";

/** Before any window. */
const beforeAll = -(2n ** 60n);

/**
 * SQL of (stage_id, groups …, ns, n): exclusive time of a table's activities in every step's window and how many began
 * in it. One pass: nearly every activity lies inside the window of the step that launched it, found by a hash join; any
 * other is looked up, and where a window's edge cuts it the device is swept again for its exclusive time inside.
 * @param table kernels or copies
 * @param where which of their rows
 * @param windows step_windows of stage-groups.ts, or a SELECT in parentheses of such windows
 */
export function activitiesOfWindows(
  table: 'kernels' | 'copies',
  groups: Groups,
  unmarked: boolean,
  windows = stepWindows,
  where = 'true',
): SteppedQuery {
  const names = Object.keys(groups);
  const columns = names.map((name) => `${groups[name]} AS ${name}`).join(', ');
  if (unmarked) {
    return {
      steps: {},
      select: `SELECT 0 AS stage_id, ${columns}, sum(coalesce(exclusive_ns, 0))::DOUBLE AS ns, count(*)::DOUBLE AS n FROM own_${table} WHERE ${where} GROUP BY ALL`,
    };
  }
  const list = names.join(', ');
  const cut = cutTimes('sum_cuts', 'ns / n');
  return {
    steps: {
      sum_windows: `SELECT stage_id AS window_id, start_ns AS w_start, end_ns AS w_end FROM ${windows}`,
      sum_groups: `SELECT inside, ${list}, ${cutKey
        .split(', ')
        .map((key) => `CASE WHEN inside IS NULL THEN ${key} END AS ${key}`)
        .join(', ')}, sum(e_ns)::DOUBLE AS ns, count(*)::DOUBLE AS n FROM (
        SELECT ${columns}, ${cutColumns(table, 'a')}, coalesce(exclusive_ns, 0) AS e_ns,
          CASE WHEN start_ns >= w_start AND start_ns + dur_ns <= w_end THEN window_id END AS inside
        FROM (SELECT * FROM own_${table} WHERE ${where}) a
        JOIN (SELECT p.stage_id, sum_windows.* FROM place_of p LEFT JOIN sum_windows ON window_id = p.step_id) likely ON likely.stage_id = ${placeKey('a')}) GROUP BY ALL`,
      sum_begun: `SELECT s.* EXCLUDE (inside), CASE WHEN e_end <= w_end THEN window_id END AS inside
        FROM sum_groups s ASOF JOIN (SELECT * FROM sum_windows UNION ALL SELECT NULL, ${beforeAll}, ${beforeAll}) begun ON s.e_start >= begun.w_start`,
      sum_cuts: `SELECT sum_begun.*, window_id, w_start, greatest(w_start, e_start) AS from_ns, least(w_end, e_end) AS to_ns
        FROM sum_begun JOIN sum_windows ON e_start < w_end AND e_end > w_start WHERE inside IS NULL`,
      ...cut.steps,
    },
    select: `SELECT stage_id, ${list}, sum(ns) AS ns, sum(n) AS n FROM (
      SELECT inside AS stage_id, ${list}, ns, n FROM sum_groups JOIN sum_windows ON window_id = inside
      UNION ALL SELECT inside, ${list}, ns, n FROM sum_begun WHERE inside IS NOT NULL
      UNION ALL SELECT window_id, ${list}, n * cut_ns, CASE WHEN e_start >= w_start THEN n ELSE 0 END
      FROM sum_cuts JOIN (${cut.select}) USING (${cutKey}, from_ns, to_ns)) GROUP BY ALL`,
  };
}

/** Idle time by part of every step's window; `outside` is the whole of the capture. */
export function gapSums(unmarked: boolean, windows = stepWindows, grouped?: string): string {
  if (!unmarked) return gapsOfWindows('true', windows, grouped);
  const sums = gapParts.map((part) => `sum(coalesce(${part}_ns, 0))::DOUBLE AS ${part}`);
  return `SELECT 0 AS stage_id, ${sums.join(', ')} FROM own_gaps`;
}

/** Time of windows before the first activity of the capture, and after its last one. */
export const edgeSums = (
  { source }: Pick<TraceScope, 'source'>,
  windows = 'windows',
  gaps = 'own_gaps',
): string =>
  `SELECT stage_id, greatest(0, least(end_ns, first_ns) - start_ns)::DOUBLE AS ${edges[0]},
     greatest(0, end_ns - greatest(start_ns, last_ns))::DOUBLE AS ${edges[1]}
   FROM ${windows}, (SELECT least(${source.start_ns}, min(start_ns)) AS first_ns, greatest(${source.end_ns}, max(start_ns + dur_ns)) AS last_ns FROM ${gaps})`;

const summedParts = gapParts.map((part) => `sum(${part})::DOUBLE AS ${part}`).join(', ');
const partsOrZero = gapParts.map((part) => `coalesce(${part}, 0) AS ${part}`).join(', ');

/** What of the table window_idle a query that stands alone may name: the parts of gaps in each window, clipped to it. */
export const idleOfWindowsSql = `SELECT kind, stage_id, ${partsOrZero}
  FROM windows LEFT JOIN (SELECT stage_id, ${summedParts} FROM window_gaps GROUP BY stage_id) USING (stage_id)`;

/**
 * Makes the tables window_kernels (stage_id, class, ns, n), window_copies (stage_id, kind, ns, n), window_idle (stage_id,
 * the parts of gaps and edges) from what import swept: sums over few columns. Needs `windows`.
 * @param windows of the steps; those of makeGroups hold what lies between steps as well
 */
export async function makeWindowSums(
  scope: TraceScope,
  clocks: readonly PhaseClock[],
  windows = stepWindows,
): Promise<void> {
  const { database } = scope;
  const unmarked = clocks.some(({ kind }) => kind === 'outside');
  await createFrom(
    database,
    'window_kernels',
    activitiesOfWindows('kernels', kernelGroups, unmarked, windows),
  );
  await createFrom(database, 'window_copies', activitiesOfWindows('copies', copyGroups, unmarked, windows));
  await makeGapSpan(scope);
  if (!unmarked) await makeStepGaps(scope);
  await database.query(
    `CREATE TEMP TABLE window_idle AS
     SELECT w.kind, w.stage_id, ${partsOrZero}, ${edges.join(', ')}
     FROM ${windows} w JOIN (${edgeSums(scope, windows, 'gap_span')}) USING (stage_id)
     LEFT JOIN (SELECT stage_id, ${summedParts} FROM (${gapSums(unmarked, windows, stepGaps)}) GROUP BY stage_id) USING (stage_id)`,
  );
}
