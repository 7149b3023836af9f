import { minKernelNs } from './counted-kernels.js';

/** A row of `faultSql`: one kernel and grid, means over its profiled launches; null for a metric that was not collected. */
export type CountedRow<M extends string, D extends string> = {
  kernel_name: string;
  grid: string;
  launches: number;
  duration_ns: number;
} & Record<M, number | null> &
  Record<D, number | null>;

/** A condition on hardware counters, as SQL. */
export interface CounterCondition<M extends string, D extends string> {
  /** Column → ncu's name of the metric. */
  metrics: Record<M, string>;
  /** Derived columns: SQL over the metrics. */
  derived: Record<D, string>;
  /** SQL condition over metrics and derived columns. */
  where: string;
  /** Further tables of the query by name, and their join with `kernel`. */
  tables?: { with: Record<string, string>; join: string };
}

const dimension = (axis: string) =>
  `CAST(max(value) FILTER (WHERE metric = 'launch__grid_dim_${axis}') AS BIGINT)`;

/**
 * SQL of the tables `kernel` (means per kernel and grid over its profiled launches) and `with_metrics` (kernels long enough to be
 * worth a change, with the derived columns).
 */
function metricsSql<M extends string, D extends string>(condition: CounterCondition<M, D>): string {
  const metrics = Object.entries<string>(condition.metrics);
  const { with: tables = {}, join = '' } = condition.tables ?? {};
  return `WITH launch AS (
      SELECT kernel_name, concat_ws(',', ${['x', 'y', 'z'].map(dimension).join(', ')}) AS grid,
        max(value) FILTER (WHERE metric = 'gpu__time_duration.sum') AS duration_ns,
        ${metrics.map(([column, metric]) => `max(value) FILTER (WHERE metric = '${metric}') AS ${column}`).join(',\n        ')}
      FROM counters GROUP BY execution_id, capture_id, pid, device, kernel_name, launch_ordinal),
    kernel AS (
      SELECT kernel_name, grid, count(*) AS launches, avg(duration_ns) AS duration_ns, ${metrics.map(([column]) => `avg(${column}) AS ${column}`).join(', ')}
      FROM launch GROUP BY kernel_name, grid),
    ${Object.entries(tables)
      .map(([name, sql]) => `${name} AS (${sql}),\n    `)
      .join('')}with_metrics AS (
      SELECT kernel.*, ${Object.entries<string>(condition.derived)
        .map(([column, sql]) => `${sql} AS ${column}`)
        .join(', ')}
      FROM kernel ${join} WHERE duration_ns >= ${minKernelNs})`;
}

/** Kernels that meet the condition, by their time over all launches, the largest first. */
export const faultSql = <M extends string, D extends string>(condition: CounterCondition<M, D>): string =>
  `${metricsSql(condition)}
    SELECT * FROM with_metrics WHERE ${condition.where} ORDER BY launches * duration_ns DESC, kernel_name, grid`;

/** Number of kernels that can be judged: those with a known `column`. */
export const knownSql = <M extends string, D extends string>(
  condition: CounterCondition<M, D>,
  column: D,
): string => `${metricsSql(condition)}
    SELECT count(${column}) AS known FROM with_metrics`;
