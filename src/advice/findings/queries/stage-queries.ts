import { stepKindsSql } from '../../../model/record.js';
import { literal } from '../../../facts/trace/scope.js';

/**
 * Measured times of the timed stages of a kind in each execution, for one rank (null: all), by device events if the execution has
 * them, else from host ranges: a decode or mixed step lasts until the start of the next one of its thread and iteration
 * (docs/concepts/stages-and-clocks.md; recordedSteps uses the same definition).
 */
export const stepTimesSql = (
  kinds: readonly string[],
  executions: readonly string[],
  rank: number | null,
): string =>
  `WITH step_rows AS (
     SELECT *, lead(start_ns) OVER thread AS next_ns, lead(device_start_ns) OVER thread AS next_device_ns,
       kind IN ('decode', 'mixed') AND lead(kind) OVER thread IN ('decode', 'mixed') AND lead(iteration) OVER thread IS NOT DISTINCT FROM iteration AS followed
     FROM stages WHERE execution_id IN (${executions.map((id) => literal(id)).join(', ')}) AND kind IN ${stepKindsSql}
       AND ${rank === null ? 'true' : `coalesce(rank, 0) = ${rank}`} AND NOT coalesce(warmup, false) AND end_ns IS NOT NULL
     WINDOW thread AS (PARTITION BY execution_id, capture_id, rank, pid, tid ORDER BY start_ns)),
   timed AS (
     SELECT execution_id, capture_id, kind, (CASE WHEN device_start_ns IS NOT NULL AND device_dur_ns IS NOT NULL
       THEN CASE WHEN followed THEN coalesce(next_device_ns - device_start_ns, device_dur_ns) ELSE device_dur_ns END
       ELSE CASE WHEN followed THEN next_ns ELSE end_ns END - start_ns END) / 1e6 AS ms
     FROM step_rows WHERE kind IN (${kinds.map((kind) => literal(kind)).join(', ')}))
   ${spread('execution_id, capture_id, kind', 'timed')}`;

/** Measured times of the instances of a kind on the analyzed timeline. */
export const windowTimesSql = (kinds: readonly string[]): string =>
  `WITH timed AS (SELECT kind, (end_ns - start_ns) / 1e6 AS ms FROM windows WHERE kind IN (${kinds.map((kind) => literal(kind)).join(', ')}))
   ${spread('kind', 'timed')}`;

const spread = (by: string, from: string): string =>
  `SELECT ${by}, count(*) AS instances, round(avg(ms), 4) AS mean_ms, round(stddev_samp(ms), 4) AS sd_ms, round(median(ms), 4) AS median_ms,
     round(min(ms), 4) AS min_ms, round(max(ms), 4) AS max_ms
   FROM ${from} GROUP BY ALL ORDER BY ${by}`;
