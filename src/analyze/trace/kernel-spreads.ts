import type { TraceScope } from './scope.js';
import { spreadColumns } from './spread.js';

/** From the API call's return to the kernel's begin; null for a kernel that began before its call returned. */
export const queueNs =
  'CASE WHEN start_ns > api_start_ns + api_dur_ns THEN start_ns - api_start_ns - api_dur_ns END';

/** A kernel whose launch was recorded, in CUDA graphs or not; its columns hold the spreads total_, api_, queue_ and kernel_ too. */
export interface LaunchedRow {
  kernel: string | null;
  in_graph: boolean;
  short_name: string | null;
  correlation: number | null;
  pid: number | null;
  kernel_total_ns: number;
}

/**
 * Times of every kernel of the focus whose launch was recorded, by name, the longest first; `all` where no other kernel
 * and none twice is there, so that a kernel's own times need not be asked again: medians of millions of rows.
 * Needs `kernel_cells`.
 */
export async function launchedRows({ database }: TraceScope): Promise<{ rows: LaunchedRow[]; all: boolean }> {
  const [cells] = await database.query<{ others: number }>(
    'SELECT count_if(orphan OR in_graph OR name IS NULL) AS others FROM kernel_cells',
  );
  const rows = await database.query<LaunchedRow>(
    `SELECT name AS kernel, in_graph, any_value(short_name) AS short_name, max(correlation) AS correlation, arg_max(pid, correlation) AS pid,
            ${spreadColumns('greatest(start_ns + dur_ns, api_start_ns + api_dur_ns) - api_start_ns', 'total_')}, ${spreadColumns('api_dur_ns', 'api_')},
            ${spreadColumns(queueNs, 'queue_')}, ${spreadColumns('dur_ns', 'kernel_')}
     FROM (SELECT *, graph_node IS NOT NULL AS in_graph FROM own_kernels WHERE api_start_ns IS NOT NULL)
     GROUP BY name, in_graph ORDER BY kernel_total_ns DESC, name, in_graph`,
  );
  return { rows, all: cells?.others === 0 };
}
