import { stepKindsSql } from '../../../model/record.js';
import { literal } from '../../../facts/trace/scope.js';

/**
 * W of the timed stages of a kind in each execution, from host ranges: a decode or mixed step lasts until the start of the
 * next one on its thread and in its iteration (docs/concepts/stages-and-clocks.md, W).
 */
export const hostTimesSql = (kinds: readonly string[], executions: readonly string[]): string =>
  `WITH own AS (
     SELECT execution_id, capture_id, kind, start_ns, end_ns, iteration, lead(start_ns) OVER thread AS next_ns, lead(kind) OVER thread AS next_kind,
       lead(iteration) OVER thread AS next_iteration
     FROM stages WHERE execution_id IN (${executions.map((id) => literal(id)).join(', ')}) AND kind IN ${stepKindsSql}
       AND NOT coalesce(warmup, false) AND end_ns IS NOT NULL
     WINDOW thread AS (PARTITION BY execution_id, capture_id, rank, pid, tid ORDER BY start_ns)),
   timed AS (
     SELECT *, (CASE WHEN kind IN ('decode', 'mixed') AND next_kind IN ('decode', 'mixed') AND next_iteration IS NOT DISTINCT FROM iteration
       THEN next_ns ELSE end_ns END - start_ns) / 1e6 AS ms FROM own WHERE kind IN (${kinds.map((kind) => literal(kind)).join(', ')}))
   ${spread('execution_id, capture_id, kind', 'timed')}`;

/** W of the instances of a kind on the analyzed timeline. */
export const windowTimesSql = (kinds: readonly string[]): string =>
  `WITH timed AS (SELECT kind, (end_ns - start_ns) / 1e6 AS ms FROM windows WHERE kind IN (${kinds.map((kind) => literal(kind)).join(', ')}))
   ${spread('kind', 'timed')}`;

const spread = (by: string, from: string): string =>
  `SELECT ${by}, count(*) AS instances, round(avg(ms), 4) AS mean_ms, round(stddev_samp(ms), 4) AS sd_ms, round(median(ms), 4) AS median_ms,
     round(min(ms), 4) AS least_ms, round(max(ms), 4) AS most_ms
   FROM ${from} GROUP BY ALL ORDER BY ${by}`;
