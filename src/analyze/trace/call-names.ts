import { scopeKey, type TraceScope } from './scope.js';

/** Names of the API calls of the rank, read once however many questions sort them. */
export async function callNames({ database, source }: TraceScope): Promise<string[]> {
  await database.once(
    'call_names',
    scopeKey(source),
    'SELECT DISTINCT name FROM own_api WHERE name IS NOT NULL',
  );
  const rows = await database.query<{ name: string }>('FROM call_names ORDER BY name');
  return rows.map(({ name }) => name);
}
