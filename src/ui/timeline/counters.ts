import type { SessionDatabase } from '../../session/query.js';
import { plural } from '../../vocabulary/format.js';
import {
  isGpuScope,
  metricLabel,
  metricUnit,
  sampledMetrics,
  scopeLabel,
} from '../../vocabulary/sampled-metrics.js';
import type { Counter } from './shown.js';
import type { Timeline } from './timeline.js';

/** Maximum points per series, about a screen width: longer series keep the minimum and maximum of each time bin. */
const maxPoints = 4000;

interface SampledSeries {
  host: string;
  /** "cores" for the maximum over all sampled CPU cores. */
  scope: string;
  metric: string;
  cores: number;
  times: number[];
  values: number[];
}

/**
 * All sampled series with values during an execution, GPUs first, then the host. CPU cores are one series with the maximum over them: a
 * host can have hundreds. A constant series has its first and last sample.
 */
export async function countersOf(database: SessionDatabase, { from, to }: Timeline): Promise<Counter[]> {
  const rows = await database.query<SampledSeries>(
    `WITH samples AS (
       SELECT host, if(regexp_full_match(scope, 'cpu\\d+'), 'cores', scope) AS scope, metric, t_ns, max(value) AS value, count(DISTINCT scope) AS cores
       FROM telemetry WHERE t_ns BETWEEN $1 AND $2 AND value IS NOT NULL GROUP BY ALL)
     SELECT host, scope, metric, max(cores) AS cores, list(t_ns ORDER BY t_ns) AS times, list(value ORDER BY t_ns) AS values FROM (
       SELECT * FROM samples
       QUALIFY row_number() OVER (PARTITION BY host, scope, metric, ((t_ns - $1) // $3) ORDER BY value, t_ns) = 1
         OR row_number() OVER (PARTITION BY host, scope, metric, ((t_ns - $1) // $3) ORDER BY value DESC, t_ns DESC) = 1)
     GROUP BY ALL ORDER BY ALL`,
    [from, to, Math.max(1, Math.ceil((2 * (to - from)) / maxPoints))],
  );
  const hasOneHost = new Set(rows.map(({ host }) => host)).size === 1;
  return rows
    .sort((a, b) => orderOf(a) - orderOf(b))
    .map(({ host, scope, metric, cores, times, values }) => {
      const scopeText = scope === 'cores' ? `${plural(cores, 'CPU core')}, highest` : scopeLabel(scope);
      const isConstant = values.every((value) => value === values[0]);
      const kept = (_: unknown, index: number): boolean =>
        !isConstant || index === 0 || index === times.length - 1;
      return {
        label: `${hasOneHost ? '' : `${host} · `}${scopeText} · ${metricLabel(metric)}`,
        unit: metricUnit(metric),
        times: times.filter(kept).map((ns) => ns - from),
        // More digits than a curve or its limit shows would double the response.
        values: values.filter(kept).map((value) => Number(value.toPrecision(6))),
      };
    });
}

const known = sampledMetrics.map(({ id }) => id);

/** GPUs first; in each scope, metrics in display order, those without a label last. */
function orderOf({ scope, metric }: SampledSeries): number {
  const index = known.indexOf(metric);
  return (isGpuScope(scope) ? 0 : 1000) + (index === -1 ? known.length : index);
}
