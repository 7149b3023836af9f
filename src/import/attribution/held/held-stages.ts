import type { Columns } from '../../../model/workbench.js';
import { stageColumns } from '../host-sweep.js';
import type { RowWriter } from '../row-writer.js';
import { sharedFloats } from './shared-arrays.js';

/** Stages as the host sweep writes them: row n is stage n + 1. */
export interface HeldStages extends RowWriter {
  rows: number;
  column(name: (typeof stageColumns)[number]): Float64Array;
}

export function heldStages(): HeldStages {
  let arrays = stageColumns.map(() => sharedFloats(1024));
  const held: HeldStages = {
    rows: 0,
    add(...values) {
      if (held.rows === arrays[0]!.length) {
        arrays = arrays.map((array) => {
          const larger = sharedFloats(array.length * 2);
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
