import type { TraceScope } from './scope.js';

export const callNamesSql = 'SELECT DISTINCT name FROM rank_api WHERE name IS NOT NULL';

/** Names of the rank's API calls, read once for all queries that use them. */
export async function readCallNames(scope: TraceScope): Promise<string[]> {
  await scope.need('call_names');
  const rows = await scope.database.query<{ name: string }>('FROM call_names ORDER BY name');
  return rows.map(({ name }) => name);
}
