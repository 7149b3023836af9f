import type { Workbench } from '../../model/workbench.js';

/**
 * Rows joined or sorted at once. A join or sort of a larger table can exceed the memory limit: it spills, and still fails
 * if it cannot hold its minimum.
 */
export const sliceRows = 150_000;

/** Consecutive rows of a table, and the range of a key in them; null where no row has one. */
export interface Slice {
  /** SQL condition on the table's rowid. */
  rows: string;
  low: number | null;
  high: number | null;
}

/**
 * Slices of the table in its own order. Keys that rise with time (correlation ids, activities, operators) keep the join
 * partner of a slice small; other keys work, but slower.
 * @param key SQL over the table
 */
export async function readSlices(workbench: Workbench, table: string, key: string): Promise<Slice[]> {
  const parts = await workbench.query<{ part: number; low: number | null; high: number | null }>(
    `SELECT rowid // ${sliceRows} AS part, min(key) AS low, max(key) AS high
     FROM (SELECT rowid, ${key} AS key FROM ${table}) GROUP BY part ORDER BY part`,
  );
  return parts.map(({ part, low, high }) => ({
    rows: `rowid BETWEEN ${part * sliceRows} AND ${(part + 1) * sliceRows - 1}`,
    low,
    high,
  }));
}

/** SQL condition for the rows that a slice can be joined with. */
export function inSlice(column: string, { low, high }: Pick<Slice, 'low' | 'high'>): string {
  return low === null || high === null ? 'false' : `${column} BETWEEN ${low} AND ${high}`;
}
