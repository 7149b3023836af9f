import type { SteppedQuery } from '../../session/stepped-query.js';

/** Keys of an activity that a window cuts. Activities with equal keys share their exclusive time. */
export const cutKeys = ['e_start', 'e_end', 'e_priority', 'e_stream'];
export const cutKey = cutKeys.join(', ');

/** Columns of cutKey from rank_kernels or rank_copies, in the form that attribution's sweep uses. */
export const cutColumns = (table: 'kernels' | 'copies', row: string): string =>
  `${row}.start_ns AS e_start, ${row}.start_ns + ${row}.dur_ns AS e_end,
   ${table === 'copies' ? '2' : `CASE WHEN ${row}.class = 'communication' THEN 1 ELSE 0 END`} AS e_priority, hash(${row}.pid, ${row}.context, ${row}.stream) AS e_stream`;

/**
 * SQL of (cutKey, from_ns, to_ns, cut_ns): exclusive time of each activity between two instants, by the rule of
 * attribution's sweep over all activities of the device. A proportional share would be wrong: a kernel can be exclusive
 * in its last tenth only. Activities that are exclusive throughout, or never, need no sweep.
 * @param cuts name of a table with cutKey, from_ns, to_ns
 * @param exclusive SQL of the whole exclusive time of one activity in `cuts`
 */
export function cutTimes(cuts: string, exclusive: string): SteppedQuery {
  const cut = 'exclusive_ns > 0 AND exclusive_ns < e_end - e_start';
  return {
    steps: {
      cut_once: `SELECT ${cutKey}, from_ns, to_ns, any_value(${exclusive}) AS exclusive_ns, row_number() OVER () AS cut_id FROM ${cuts} WHERE from_ns < to_ns GROUP BY ${cutKey}, from_ns, to_ns`,
      cut_overlaps: `SELECT c.cut_id, c.e_priority AS cut_priority, r.e_priority, r.e_stream, r.e_start < c.e_start AND r.e_stream = c.e_stream AND r.e_priority = c.e_priority AS before_cut,
        (r.e_start, r.e_end, r.e_priority, r.e_stream) = (c.e_start, c.e_end, c.e_priority, c.e_stream) AS equal_activity,
        greatest(r.e_start, c.from_ns) AS a_from, least(r.e_end, c.to_ns) AS a_to
      FROM (SELECT * FROM cut_once WHERE ${cut}) c
      JOIN (SELECT ${cutColumns('kernels', 'k')} FROM rank_kernels k UNION ALL SELECT ${cutColumns('copies', 'c')} FROM rank_copies c) r
        ON r.e_start < c.to_ns AND r.e_end > c.from_ns WHERE r.e_priority <= c.e_priority`,
    },
    select: `WITH earlier AS (SELECT cut_id, max(a_to) FILTER (before_cut) AS earlier_end_ns, count_if(equal_activity) AS equal_activities FROM cut_overlaps GROUP BY cut_id),
    joined AS (
      SELECT cut_id, cut_priority, e_priority, e_stream, min(a_from) AS a_from, max(a_to) AS a_to FROM (
        SELECT *, sum(starts_island) OVER (PARTITION BY cut_id, e_priority, e_stream ORDER BY a_from, a_to ROWS UNBOUNDED PRECEDING) AS island FROM (
          SELECT *, CASE WHEN a_from <= max(a_to) OVER (PARTITION BY cut_id, e_priority, e_stream ORDER BY a_from, a_to ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS starts_island
          FROM cut_overlaps))
      GROUP BY cut_id, cut_priority, e_priority, e_stream, island),
    change AS (
      SELECT cut_id, t, sum(higher) AS higher, sum(same) AS same FROM (
        SELECT cut_id, a_from AS t, (e_priority < cut_priority)::INTEGER AS higher, (e_priority = cut_priority)::INTEGER AS same FROM joined
        UNION ALL SELECT cut_id, a_to, -(e_priority < cut_priority)::INTEGER, -(e_priority = cut_priority)::INTEGER FROM joined
        UNION ALL SELECT cut_id, earlier_end_ns, 0, 0 FROM earlier WHERE earlier_end_ns IS NOT NULL) GROUP BY cut_id, t),
    segment AS (
      SELECT cut_id, t, lead(t) OVER in_time AS until_t, sum(higher) OVER in_time AS higher_running, sum(same) OVER in_time AS same_running
      FROM change WINDOW in_time AS (PARTITION BY cut_id ORDER BY t))
    SELECT ${cutKey}, from_ns, to_ns,
      coalesce(sum(CASE WHEN higher_running = 0 AND same_running > 0 AND t >= coalesce(earlier_end_ns, t) THEN (until_t - t)::DOUBLE / same_running ELSE 0 END), 0) / any_value(equal_activities) AS cut_ns
    FROM cut_once JOIN earlier USING (cut_id) JOIN segment USING (cut_id) GROUP BY ALL
    UNION ALL SELECT ${cutKey}, from_ns, to_ns, CASE WHEN exclusive_ns > 0 THEN to_ns - from_ns ELSE 0 END FROM cut_once WHERE NOT (${cut})`,
  };
}
