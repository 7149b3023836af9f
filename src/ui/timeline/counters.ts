import type { SessionDatabase } from '../../session/query.js';
import { metricLabel, sampledMetrics, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import type { Counter } from './shown.js';
import type { Timeline } from './timeline.js';

/** Maximum points per series, about a screen width: longer series keep the minimum and maximum of each time bin. */
const maxPoints = 4000;

/** Sampled series with values during an execution, GPUs first, then the host. Constant series and single cores are left out. */
export async function countersOf(database: SessionDatabase, { from, to }: Timeline): Promise<Counter[]> {
  const rows = await database.query<{ scope: string; metric: string; times: number[]; values: number[] }>(
    `SELECT scope, metric, list(t_ns ORDER BY t_ns) AS times, list(value ORDER BY t_ns) AS values FROM (
       SELECT scope, metric, t_ns, value FROM telemetry WHERE t_ns BETWEEN $1 AND $2 AND value IS NOT NULL
       QUALIFY row_number() OVER (PARTITION BY scope, metric, ((t_ns - $1) // $3) ORDER BY value) = 1
         OR row_number() OVER (PARTITION BY scope, metric, ((t_ns - $1) // $3) ORDER BY value DESC) = 1)
     GROUP BY ALL HAVING min(value) < max(value)`,
    [from, to, Math.max(1, Math.ceil((2 * (to - from)) / maxPoints))],
  );
  const known = sampledMetrics.map(({ id }) => id);
  return rows
    .filter(({ scope, metric }) => known.includes(metric) && !/^cpu\d+$/.test(scope))
    .sort((a, b) => orderOf(a, known) - orderOf(b, known))
    .map(({ scope, metric, times, values }) => ({
      label: `${scopeLabel(scope)} · ${metricLabel(metric)}`,
      unit: sampledMetrics.find(({ id }) => id === metric)!.unit,
      times: times.map((ns) => ns - from),
      values,
    }));
}

const orderOf = ({ scope, metric }: { scope: string; metric: string }, known: readonly string[]): number =>
  (scope.startsWith('gpu') ? 0 : 1000) + known.indexOf(metric);
