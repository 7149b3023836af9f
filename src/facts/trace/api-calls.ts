import type { ApiCall } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

/** Runtime and driver calls of the rank by total time. A runtime call includes the driver calls inside it. */
export async function readApiCalls(scope: TraceScope): Promise<ApiCall[]> {
  const { database } = scope;
  await scope.need('rank_api');
  const rows = await queryDurations<{ name: string | null; api: string | null; total_ns: number }>(
    database,
    (type) =>
      `SELECT name, any_value(api) AS api, ${spreadColumns('dur_ns', '', type)} FROM rank_api GROUP BY name ORDER BY total_ns DESC, name`,
  );
  const total = rows.reduce((sum, row) => sum + row.total_ns, 0);
  return rows.map((row) => ({
    name: row.name ?? '',
    api: row.api,
    ...spreadOf(row)!,
    share: total > 0 ? row.total_ns / total : 0,
  }));
}
