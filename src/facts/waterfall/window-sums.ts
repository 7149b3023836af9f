import { gapParts } from '../../model/bars.js';
import { cutColumns, cutKey, cutKeys, cutTimes } from '../trace/cut-activities.js';
import { edgeCauses, gapsOfWindows, selectStepGaps } from '../trace/phases.js';
import { placeKey, type TraceScope } from '../trace/scope.js';
import type { SteppedQuery } from '../../session/stepped-query.js';

/** Columns to group a table by: SQL expression by name. */
type Groups = Record<string, string>;

export const kernelGroups = { class: "coalesce(class, 'other')" } satisfies Groups;

/** htod_pageable, dtoh_pinned, dtod, memset, …: direction, and the kind of host memory if recorded. */
export const copyGroups = {
  kind: `lower(coalesce(kind, 'unknown')) || CASE
    WHEN kind IN ('HtoD', 'HtoH') AND src_kind IN ('pageable', 'pinned') THEN '_' || src_kind
    WHEN kind = 'DtoH' AND dst_kind IN ('pageable', 'pinned') THEN '_' || dst_kind ELSE '' END`,
} satisfies Groups;

export const nameGroups = { kernel: "coalesce(short_name, name, '?')" } satisfies Groups;

const beforeAnyWindow = -(2n ** 60n);

/**
 * SQL of (stage_id, groups …, ns, n): exclusive time of a table's activities in every step's window, and how many
 * started in it. Nearly every activity is inside the window of the step that launched it, which one hash join finds.
 * The others are looked up, and if a window's edge cuts one, exclusive time inside the window is computed again.
 */
export function activitiesOfWindows(
  table: 'kernels' | 'copies',
  groups: Groups,
  unmarked: boolean,
): SteppedQuery {
  const names = Object.keys(groups);
  const columns = names.map((name) => `${groups[name]} AS ${name}`).join(', ');
  if (unmarked) {
    return {
      steps: {},
      select: `SELECT 0 AS stage_id, ${columns}, sum(coalesce(exclusive_ns, 0))::DOUBLE AS ns, count(*)::DOUBLE AS n FROM rank_${table} GROUP BY ALL`,
    };
  }
  const list = names.join(', ');
  const cut = cutTimes('sum_cuts', 'ns / n');
  return {
    steps: {
      sum_windows: `SELECT stage_id AS window_id, start_ns AS w_start, end_ns AS w_end FROM step_windows`,
      sum_groups: `SELECT inside, ${list}, ${cutKeys
        .map((key) => `CASE WHEN inside IS NULL THEN ${key} END AS ${key}`)
        .join(', ')}, sum(e_ns)::DOUBLE AS ns, count(*)::DOUBLE AS n FROM (
        SELECT ${columns}, ${cutColumns(table, 'a')}, coalesce(exclusive_ns, 0) AS e_ns,
          CASE WHEN start_ns >= w_start AND start_ns + dur_ns <= w_end THEN window_id END AS inside
        FROM rank_${table} a
        JOIN (SELECT p.stage_id, sum_windows.* FROM stage_places p LEFT JOIN sum_windows ON window_id = p.step_id) likely ON likely.stage_id = ${placeKey('a')}) GROUP BY ALL`,
      sum_started: `SELECT s.* EXCLUDE (inside), CASE WHEN e_end <= w_end THEN window_id END AS inside
        FROM sum_groups s ASOF JOIN (SELECT * FROM sum_windows UNION ALL SELECT NULL, ${beforeAnyWindow}, ${beforeAnyWindow}) started ON s.e_start >= started.w_start`,
      sum_cuts: `SELECT sum_started.*, window_id, w_start, greatest(w_start, e_start) AS from_ns, least(w_end, e_end) AS to_ns
        FROM sum_started JOIN sum_windows ON e_start < w_end AND e_end > w_start WHERE inside IS NULL`,
      ...cut.steps,
    },
    select: `SELECT stage_id, ${list}, sum(ns) AS ns, sum(n) AS n FROM (
      SELECT inside AS stage_id, ${list}, ns, n FROM sum_groups JOIN sum_windows ON window_id = inside
      UNION ALL SELECT inside, ${list}, ns, n FROM sum_started WHERE inside IS NOT NULL
      UNION ALL SELECT window_id, ${list}, n * cut_ns, CASE WHEN e_start >= w_start THEN n ELSE 0 END
      FROM sum_cuts JOIN (${cut.select}) USING (${cutKey}, from_ns, to_ns)) GROUP BY ALL`,
  };
}

/** Time of windows before the capture's first activity and after its last. */
export const edgeSums = ({ source }: TraceScope, windows: string): string =>
  `SELECT stage_id, greatest(0, least(end_ns, first_ns) - start_ns)::DOUBLE AS ${edgeCauses[0]},
     greatest(0, end_ns - greatest(start_ns, last_ns))::DOUBLE AS ${edgeCauses[1]}
   FROM ${windows}, (SELECT least(${source.start_ns}, min(start_ns)) AS first_ns, greatest(${source.end_ns}, max(start_ns + dur_ns)) AS last_ns FROM gap_span)`;

const summedParts = gapParts.map((part) => `sum(${part})::DOUBLE AS ${part}`).join(', ');
const partsOrZero = gapParts.map((part) => `coalesce(${part}, 0) AS ${part}`).join(', ');

/**
 * Parts of gaps in each step's window, cut at its edges, and time before the capture's first activity and after its
 * last.
 */
export const windowIdleSql = (scope: TraceScope): string =>
  `SELECT w.kind, w.stage_id, ${partsOrZero}, ${edgeCauses.join(', ')}
     FROM step_windows w JOIN (${edgeSums(scope, 'step_windows')}) USING (stage_id)
     LEFT JOIN (SELECT stage_id, ${summedParts} FROM (${gapsOfWindows('true', 'step_windows', selectStepGaps)}) GROUP BY stage_id) USING (stage_id)`;
