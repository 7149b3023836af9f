import { opClasses } from '../../model/classes.js';
import type { Workbench } from '../../model/workbench.js';
import { opClassOf } from '../kernel-classes/op-classes.js';
import { openRows } from './row-writer.js';

/** Above an operator that launches kernels lie at most some that call it, then modules and Python. */
const mostLevels = 8;

/**
 * Classes of kernels whose name no rule knows (`_fwd_kernel`, an own CUDA kernel), by the operator that launched them:
 * the innermost that says one. Only operators with a namespace count, since `LlamaAttention.forward` launches everything.
 * Kernels of a CUDA graph are left out: what replays the graph says nothing of them.
 * Table attr_op_class (op_id, class), empty where nothing is unknown.
 */
export async function operatorClasses(workbench: Workbench): Promise<void> {
  await workbench.run('CREATE TABLE attr_op_class (op_id BIGINT, class attr_class_type)');
  await workbench.run(
    `CREATE TABLE attr_climb AS SELECT DISTINCT op_id, op_id AS above FROM attr_kernels
     WHERE op_id IS NOT NULL AND graph_node IS NULL AND NOT opaque_graph
       AND (name IS NULL OR name IN (SELECT code FROM attr_kernel_names WHERE class = 'other'))`,
  );
  for (let level = 0; level < mostLevels && (await climbs(workbench)); level++) {
    const names = await workbench.query<{ code: number; text: string }>(
      `SELECT code, text::VARCHAR AS text FROM trace_names WHERE code IN
         (SELECT name FROM trace_ops WHERE op_id IN (SELECT above FROM attr_climb))`,
    );
    const labels = await openRows(workbench, 'attr_op_labels', ['code', 'class']);
    for (const { code, text } of names) {
      const found = text.includes('::') ? opClassOf(text) : 'other';
      if (found !== 'other') labels.add(code, opClasses.indexOf(found) + 1);
    }
    labels.close();
    await workbench.run(
      `CREATE TABLE attr_climbed AS SELECT c.op_id, c.above, l.class::INTEGER AS class
       FROM attr_climb c JOIN trace_ops o ON o.op_id = c.above LEFT JOIN attr_op_labels l ON l.code = o.name`,
    );
    await workbench.run(
      `INSERT INTO attr_op_class SELECT op_id, ([${opClasses.map((name) => `'${name}'`).join(', ')}])[class]::attr_class_type
       FROM attr_climbed WHERE class IS NOT NULL`,
    );
    await workbench.run(
      `CREATE OR REPLACE TABLE attr_climb AS SELECT c.op_id, a.parent_op_id AS above
       FROM attr_climbed c JOIN attr_ops a ON a.op_id = c.above
       WHERE c.class IS NULL AND NOT coalesce(isnan(a.parent_op_id::DOUBLE), true)`,
    );
    for (const table of ['attr_climbed', 'attr_op_labels']) await workbench.run(`DROP TABLE ${table}`);
  }
  await workbench.run('DROP TABLE attr_climb');
}

async function climbs(workbench: Workbench): Promise<boolean> {
  const [found] = await workbench.query<{ n: number }>('SELECT count(*) AS n FROM attr_climb');
  return found!.n > 0;
}
