import type { BenchResult } from '../../model/documents/bench.js';
import type { SessionDatabase } from '../../session/query.js';
import { notSeries, seriesOf } from '../sampled-metrics.js';

/** Maximum points of a series. */
const maxPoints = 600;
const excluded = ['compute_processes', ...notSeries].map((metric) => `'${metric}'`).join(', ');

/** Host and GPUs over the whole session, averaged over equal spans; times in ms since the session started. */
export async function readBenchSeries(
  database: SessionDatabase,
): Promise<NonNullable<BenchResult['telemetry']>> {
  const rows = await database.query<{ scope: string; metric: string; t: number; value: number }>(
    `WITH samples AS (
       SELECT scope, metric, t_ns, value FROM telemetry
       WHERE value IS NOT NULL AND metric NOT IN (${excluded}) AND scope NOT SIMILAR TO 'cpu\\d+'),
     span AS (SELECT min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM samples)
     SELECT scope, metric, avg(t_ns) / 1e6 AS t, avg(value) AS value FROM samples, span
     GROUP BY scope, metric, ((t_ns - low) * ${maxPoints} // width) ORDER BY scope, metric, t`,
  );
  return seriesOf(rows);
}
