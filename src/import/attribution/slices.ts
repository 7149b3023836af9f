import type { Workbench } from '../../model/workbench.js';

/**
 * Joined or sorted at once. Of a larger table a join builds, and a sort holds, more than the database may have: it
 * spills, and fails all the same when it cannot keep what it needs at one time.
 */
export const sliceRows = 150_000;

/** Rows of a table that lie together, and the range of a key in them; null where no row has one. */
export interface Slice {
  /** SQL condition on the table's rowid. */
  rows: string;
  low: number | null;
  high: number | null;
}

/**
 * The table in slices of its own order. Keys that rise with time, as correlation ids, activities and operators do, keep
 * what a slice is joined with small; others are right, and slower.
 * @param key SQL over the table
 */
export async function slicesOf(workbench: Workbench, table: string, key: string): Promise<Slice[]> {
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

/** SQL condition that leaves what a slice may be joined with. */
export function within(column: string, { low, high }: Pick<Slice, 'low' | 'high'>): string {
  return low === null || high === null ? 'false' : `${column} BETWEEN ${low} AND ${high}`;
}
