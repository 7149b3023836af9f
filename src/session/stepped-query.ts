/** A query over intermediate results: each step may use the steps before it. */
export interface SteppedQuery {
  steps: Readonly<Record<string, string>>;
  select: string;
}

/**
 * Creates the temporary table `name` step by step. DuckDB 1.5 never plans an IEJoin in a statement with a materialized CTE: 50,000 kernels
 * by 6,000 windows then take 2.2 s instead of 0.06 s.
 */
export async function createFrom(
  database: { query(sql: string): Promise<unknown> },
  name: string,
  { steps, select }: SteppedQuery,
): Promise<void> {
  for (const [step, sql] of Object.entries(steps))
    await database.query(`CREATE TEMP TABLE ${step} AS ${sql}`);
  await database.query(`CREATE TEMP TABLE ${name} AS ${select}`);
  for (const step of Object.keys(steps)) await database.query(`DROP TABLE ${step}`);
}
