import { opClasses } from '../../model/classes.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { saveScanned, readTextsByCode } from './save-scanned.js';
import { readSlices, inSlice } from './slices.js';

/**
 * Operators: the largest table of a PyTorch profiler trace. Needs trace_ops, attr_ops and attr_op_device.
 * @param classes like OperatorClasses.classes
 */
export async function saveOps(
  workbench: Workbench,
  context: ImportContext,
  classes: Float64Array,
): Promise<void> {
  const texts = await readTextsByCode(workbench);
  const slices = await readSlices(workbench, 'trace_ops', 'op_id');
  const opColumn = (column: string) => ({ sql: `o."${column}"` });
  const text = (column: string) => ({ ...opColumn(column), texts });
  await saveScanned(
    workbench,
    context,
    'ops',
    {
      start_ns: opColumn('start_ns'),
      dur_ns: opColumn('dur_ns'),
      pid: opColumn('pid'),
      tid: opColumn('tid'),
      rank: opColumn('rank'),
      op_id: opColumn('op_id'),
      parent_op_id: { sql: 'a.parent_op_id' },
      stage_id: { sql: 'a.stage_id' },
      self_dur_ns: { sql: 'a.self_dur_ns' },
      name: text('name'),
      class: { by: 'name', values: classes, texts: opClasses },
      op_type: text('op_type'),
      input_shapes: text('input_shapes'),
      input_types: text('input_types'),
      allocated_bytes: opColumn('allocated_bytes'),
      device_dur_ns: { sql: 'd.device_dur_ns' },
    },
    slices.map((slice) => {
      const opsInSlice = (table: string) => `(SELECT * FROM ${table} WHERE ${inSlice('op_id', slice)})`;
      return `(SELECT * FROM trace_ops WHERE ${slice.rows}) o LEFT JOIN ${opsInSlice('attr_ops')} a ON a.op_id = o.op_id
        LEFT JOIN ${opsInSlice('attr_op_device')} d ON d.op_id = o.op_id`;
    }),
  );
}
