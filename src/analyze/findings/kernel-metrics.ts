import type { Evidence } from '../../model/documents/explain.js';
import type { FindingContext } from './rule.js';

export type MetricRow<T extends string> = {
  kernel_name: string;
  grid: string;
  launches: number;
  duration_ns: number;
} & Record<T, number | null>;

const dimension = (axis: string) =>
  `CAST(max(value) FILTER (WHERE metric = 'launch__grid_dim_${axis}') AS BIGINT)`;

/**
 * Counters of each kernel and grid, means over its profiled launches, the longest kernels first; only those of at least
 * `leastNs`. A metric of which nothing was collected is null.
 * @param metrics column → ncu's name for it
 */
export async function metricsByKernel<T extends string>(
  context: FindingContext,
  metrics: Record<T, string>,
  leastNs: number,
  text: (rows: MetricRow<T>[]) => string,
  keep: (row: MetricRow<T>) => boolean,
): Promise<{ rows: MetricRow<T>[]; evidence: Evidence }> {
  const columns = Object.entries<string>(metrics);
  const { rows, evidence } = await context.evidence<MetricRow<T>>(
    `WITH launch AS (
       SELECT kernel_name, concat_ws(',', ${['x', 'y', 'z'].map(dimension).join(', ')}) AS grid,
         max(value) FILTER (WHERE metric = 'gpu__time_duration.sum') AS duration_ns,
         ${columns.map(([column, metric]) => `max(value) FILTER (WHERE metric = '${metric}') AS ${column}`).join(', ')}
       FROM counters GROUP BY execution_id, capture_id, pid, device, kernel_name, launch_ordinal)
     SELECT kernel_name, grid, count(*) AS launches, avg(duration_ns) AS duration_ns, ${columns.map(([column]) => `avg(${column}) AS ${column}`).join(', ')}
     FROM launch GROUP BY kernel_name, grid HAVING avg(duration_ns) >= ${leastNs}
     ORDER BY sum(duration_ns) DESC`,
    (all) => text(all.filter(keep)),
  );
  return { rows: rows.filter(keep), evidence };
}
