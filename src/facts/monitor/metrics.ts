import type { MonitorMetric, MonitorResult } from '../../model/documents/monitor.js';
import type { SessionDatabase } from '../../session/query.js';
import { metricUnit } from '../../vocabulary/sampled-metrics.js';
import { heldMean } from '../held-samples.js';
import { notSeries, seriesOf } from '../sampled-metrics.js';

const maxPoints = 600;

/** Statistics of every series, by scope. */
export async function readMetrics(database: SessionDatabase): Promise<Map<string, MonitorMetric[]>> {
  const rows = await database.query<Omit<MonitorMetric, 'unit'> & { scope: string }>(
    `SELECT scope, metric, count(*) AS n,
       ${heldMean} AS mean, min(value) AS min,
       quantile_cont(value, 0.05) AS p5, median(value) AS median, quantile_cont(value, 0.95) AS p95, max(value) AS max,
       arg_min(value, t_ns) AS first, arg_max(value, t_ns) AS last
     FROM monitor_samples GROUP BY scope, metric ORDER BY scope, metric`,
  );
  const metricsByScope = new Map<string, MonitorMetric[]>();
  for (const { scope, ...row } of rows) {
    if (notSeries.includes(row.metric)) continue;
    metricsByScope.set(scope, [
      ...(metricsByScope.get(scope) ?? []),
      { ...row, unit: metricUnit(row.metric) },
    ]);
  }
  return metricsByScope;
}

/** Series for charts, averaged over equal spans. */
export async function readMonitorSeries(database: SessionDatabase): Promise<MonitorResult['series']> {
  const rows = await database.query<{ scope: string; metric: string; t: number; value: number }>(
    `WITH span AS (SELECT min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM monitor_samples)
     SELECT scope, metric, (avg(t_ns))::BIGINT AS t, avg(value) AS value FROM monitor_samples, span
     GROUP BY scope, metric, ((t_ns - low) * ${maxPoints} // width) ORDER BY scope, metric, t`,
  );
  return seriesOf(rows.filter(({ metric }) => !notSeries.includes(metric))).filter(
    ({ points }) => points.length > 1,
  );
}
