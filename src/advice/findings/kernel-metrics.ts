import { leastKernelNs } from './counted-kernels.js';

/** A row of `faultSql`: one kernel of one grid, means over its profiled launches; a metric that was not collected is null. */
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
  /** Columns made of the metrics: SQL. */
  derived: Record<D, string>;
  /** Over metrics and derived columns. */
  where: string;
  /** Further tables of the query by name, and how they join `kernel`. */
  tables?: { with: Record<string, string>; join: string };
}

const dimension = (axis: string) =>
  `CAST(max(value) FILTER (WHERE metric = 'launch__grid_dim_${axis}') AS BIGINT)`;

/**
 * SQL of the tables `kernel` (means of each kernel and grid over its profiled launches) and `judged` (those that take long
 * enough to be worth a change, with the derived columns).
 */
function judgedSql<M extends string, D extends string>(condition: CounterCondition<M, D>): string {
  const metrics = Object.entries<string>(condition.metrics);
  const { with: more = {}, join = '' } = condition.tables ?? {};
  return `WITH launch AS (
      SELECT kernel_name, concat_ws(',', ${['x', 'y', 'z'].map(dimension).join(', ')}) AS grid,
        max(value) FILTER (WHERE metric = 'gpu__time_duration.sum') AS duration_ns,
        ${metrics.map(([column, metric]) => `max(value) FILTER (WHERE metric = '${metric}') AS ${column}`).join(',\n        ')}
      FROM counters GROUP BY execution_id, capture_id, pid, device, kernel_name, launch_ordinal),
    kernel AS (
      SELECT kernel_name, grid, count(*) AS launches, avg(duration_ns) AS duration_ns, ${metrics.map(([column]) => `avg(${column}) AS ${column}`).join(', ')}
      FROM launch GROUP BY kernel_name, grid),
    ${Object.entries(more)
      .map(([name, sql]) => `${name} AS (${sql}),\n    `)
      .join('')}judged AS (
      SELECT kernel.*, ${Object.entries<string>(condition.derived)
        .map(([column, sql]) => `${sql} AS ${column}`)
        .join(', ')}
      FROM kernel ${join} WHERE duration_ns >= ${leastKernelNs})`;
}

/** The kernels that the condition holds of, the longest first. */
export const faultSql = <M extends string, D extends string>(condition: CounterCondition<M, D>): string =>
  `${judgedSql(condition)}
    SELECT * FROM judged WHERE ${condition.where} ORDER BY launches * duration_ns DESC, kernel_name, grid`;

/** How many kernels the condition could be asked of at all: those whose `column` is known. */
export const toldSql = <M extends string, D extends string>(
  condition: CounterCondition<M, D>,
  column: D,
): string => `${judgedSql(condition)}
    SELECT count(${column}) AS told FROM judged`;
