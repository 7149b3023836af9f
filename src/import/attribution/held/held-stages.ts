import type { Columns, Workbench } from '../../../model/workbench.js';
import { stageKinds } from '../../../model/record.js';
import type { ImportContext } from '../../importer.js';
import { stageColumns } from '../host-sweep.js';
import type { RowWriter } from '../row-writer.js';
import { computed, direct, keepRows } from './columns.js';
import type { StageWork } from './stage-work.js';

/** Stages as the host sweep writes them: row n is stage n + 1. */
export interface HeldStages extends RowWriter {
  rows: number;
  column(name: (typeof stageColumns)[number]): Float64Array;
}

export function heldStages(): HeldStages {
  let arrays = stageColumns.map(() => new Float64Array(1024));
  const held: HeldStages = {
    rows: 0,
    add(...values) {
      if (held.rows === arrays[0]!.length) {
        arrays = arrays.map((array) => {
          const larger = new Float64Array(array.length * 2);
          larger.set(array);
          return larger;
        });
      }
      for (let c = 0; c < arrays.length; c++) arrays[c]![held.rows] = values[c]!;
      held.rows++;
    },
    close: () => {},
    column: (name) => arrays[stageColumns.indexOf(name)]!.subarray(0, held.rows),
  };
  return held;
}

/** For stagesByTime. */
// oxlint-disable-next-line require-await
export async function* stageBatches(stages: HeldStages) {
  if (stages.rows === 0) return;
  const columns: Columns = {};
  for (const name of ['start_ns', 'end_ns', 'pid', 'stage_id'] as const) columns[name] = stages.column(name);
  yield { rows: stages.rows, columns };
}

/** @param containers stages that only hold numbered ones */
export async function keepStages(
  workbench: Workbench,
  context: ImportContext,
  stages: HeldStages,
  containers: ReadonlySet<number>,
  work: StageWork,
  names: readonly string[],
): Promise<void> {
  const of = (name: (typeof stageColumns)[number]) => direct(stages.column(name));
  const step = stages.column('step_index');
  await keepRows(workbench, context, 'stages', stages.rows, {
    stage_id: of('stage_id'),
    parent_id: of('parent_id'),
    phase_id: of('phase_id'),
    kind: direct(stages.column('kind'), stageKinds),
    raw_name: direct(stages.column('name'), names),
    step_index: computed((row) => (containers.has(row + 1) ? Number.NaN : step[row]!)),
    iteration: of('iteration'),
    start_ns: of('start_ns'),
    end_ns: of('end_ns'),
    pid: of('pid'),
    tid: of('tid'),
    rank: of('rank'),
    batch_size: of('batch_size'),
    new_tokens: of('new_tokens'),
    context_tokens_sum: of('context_tokens_sum'),
    warmup: of('warmup'),
    device: direct(work.device),
    device_start_ns: direct(work.device_start_ns),
    device_end_ns: direct(work.device_end_ns),
  });
}
