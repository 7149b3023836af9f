import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { causeSql, gapParts, gapPartsSql } from './gap-parts.js';
import { keepScanned } from './keep-scanned.js';
import { type Slice, slicesOf, within } from './slices.js';

const own = ['start_ns', 'dur_ns', 'pid', 'tid', 'rank', 'device', 'context', 'stage_id', 'correlation'];

/** Idle intervals of the devices, with their parts. Needs attr_gaps, attr_kernels and attr_copies. */
export async function keepGaps(
  workbench: Workbench,
  context: ImportContext,
  latency: { launchNs: number; graphNodeNs: number },
): Promise<void> {
  const kernels = await slicesOf(workbench, 'attr_gaps', 'CASE WHEN activity >= 0 THEN activity END');
  const copies = await slicesOf(workbench, 'attr_gaps', 'CASE WHEN activity < 0 THEN -1 - activity END');
  const columns = [...own, ...gapParts.map((part) => `${part}_ns`)];
  await keepScanned(
    workbench,
    context,
    'gaps',
    {
      ...Object.fromEntries(columns.map((column) => [column, { sql: column }])),
      before_op_id: { sql: 'op_id' },
      cause: { sql: causeSql(), texts: gapParts },
    },
    kernels.map((slice, number) => `(${gapsSql(slice, copies[number]!, latency)})`),
  );
}

/**
 * Between the nodes of one graph the launch call is over, whatever the host does: such gaps are node latency, and
 * dependency beyond it.
 */
function gapsSql(
  kernels: Slice,
  copies: Slice,
  { launchNs, graphNodeNs }: { launchNs: number; graphNodeNs: number },
): string {
  const from = (table: string, slice: Slice, activity: string) => `
    SELECT g.idle_ns::BIGINT AS idle_ns, g.waiting_ns::BIGINT AS waiting_ns, k.start_ns,
      CASE WHEN g.in_graph = 1 THEN g.idle_ns::BIGINT ELSE k.api_start_ns END AS api_start_ns,
      CASE WHEN g.in_graph = 1 THEN g.idle_ns::BIGINT ELSE k.api_start_ns + k.api_dur_ns END AS api_end_ns,
      CASE WHEN g.in_graph = 1 THEN ${graphNodeNs} ELSE ${launchNs} END AS latency_ns,
      k.pid, k.tid, k.rank, k.device, k.context, k.stage_id, k.op_id, k.correlation
    FROM (SELECT * FROM attr_gaps WHERE ${slice.rows}) g
    JOIN (SELECT * FROM ${table} WHERE ${within('activity', slice)}) k ON k.activity = ${activity}`;
  return `
    SELECT idle_ns AS start_ns, start_ns - idle_ns AS dur_ns, pid, tid, rank, device, context, stage_id, op_id, correlation,
      ${gapPartsSql()}
    FROM (${from('attr_kernels', kernels, 'g.activity')} UNION ALL ${from('attr_copies', copies, '-1 - g.activity')})`;
}
