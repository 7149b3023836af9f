import { stageKinds } from '../../model/record.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { saveScanned, readTextsByCode } from './save-scanned.js';
import { applyFolds, type FoldColumns, type FoldedStages } from './nested-stages.js';

/** Needs attr_stages and attr_stage_device. */
export async function saveStages(
  workbench: Workbench,
  context: ImportContext,
  folded: FoldedStages,
): Promise<void> {
  const numbers = ['stage_id', 'parent_id', 'phase_id', 'step_index', 'iteration', 'pid', 'tid', 'rank'];
  const sizes = [
    'start_ns',
    'end_ns',
    'batch_size',
    'new_tokens',
    'context_tokens_sum',
    'warmup',
    'confidence',
  ];
  const columnsOf = (alias: string, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, { sql: `${alias}.${name}` }]));
  await saveScanned(
    workbench,
    context,
    'stages',
    {
      ...columnsOf('s', [...numbers, ...sizes]),
      ...columnsOf('d', ['device', 'device_start_ns', 'device_end_ns']),
      kind: { sql: 's.kind', texts: stageKinds },
      raw_name: { sql: 's.name', texts: await readTextsByCode(workbench) },
    },
    ['attr_stages s LEFT JOIN attr_stage_device d ON d.stage_id = s.stage_id'],
    { names: [], fill: (rows, columns) => applyFolds(folded, rows, columns as FoldColumns) },
  );
}
