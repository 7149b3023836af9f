import type { Columns } from '../../../model/workbench.js';
import { applyFolds, type FoldedStages } from '../nested-stages.js';
import { sharedFloats, sharedInts } from './shared-arrays.js';

/** Values that differ per stage. */
const stageValueColumns = [
  'parent_id',
  'phase_id',
  'step_index',
  'iteration',
  'start_ns',
  'end_ns',
  'warmup',
] as const;

/** Columns from the name, for all stages of a combination, before folding. */
const labelColumns = ['kind', 'batch_size', 'new_tokens', 'context_tokens_sum'] as const;
export type LabelColumn = (typeof labelColumns)[number];

/** Stages in the order of the host sweep (row n is stage n + 1): values per stage, and the rest once per combination. */
export interface InMemoryStages {
  rows: number;
  stageValues: Record<(typeof stageValueColumns)[number], Float64Array>;
  /** The label columns of each stage, where some are folded. */
  folded: Record<LabelColumn, Float64Array> | null;
  shape: Int32Array;
  /** pid, tid, rank, name, kind, batch_size, new_tokens, context_tokens_sum, confidence by code. */
  shapes: Columns;
}

/** @param ranges each becomes a stage */
export function stageArrays(ranges: number, shapes: Columns): InMemoryStages {
  const stageValues = Object.fromEntries(stageValueColumns.map((name) => [name, sharedFloats(ranges)]));
  return {
    rows: 0,
    stageValues: stageValues as InMemoryStages['stageValues'],
    folded: null,
    shape: sharedInts(ranges),
    shapes,
  };
}

export const stageNumbers = ({ rows }: InMemoryStages): Float64Array =>
  Float64Array.from({ length: rows }, (_, row) => row + 1);

/** Writes the results of foldStages into the stages. */
export function foldInMemory(stages: InMemoryStages, found: FoldedStages): void {
  if (found.phases.size === 0) return;
  const { rows, stageValues, shape, shapes } = stages;
  const perStage = (name: LabelColumn) => {
    const values = sharedFloats(rows);
    for (let row = 0; row < rows; row++) values[row] = shapes[name]![shape[row]!]!;
    return [name, values] as const;
  };
  const folded = Object.fromEntries(labelColumns.map(perStage)) as Record<LabelColumn, Float64Array>;
  applyFolds(found, rows, { ...stageValues, ...folded, stage_id: stageNumbers(stages) });
  stages.folded = folded;
}

/** For findStagesByTime. */
// oxlint-disable-next-line require-await
export async function* stageBatches(stages: InMemoryStages) {
  const { rows, stageValues, shape, shapes } = stages;
  if (rows === 0) return;
  const columns: Columns = {
    start_ns: stageValues.start_ns,
    end_ns: stageValues.end_ns,
    pid: Float64Array.from(shape, (code) => shapes['pid']![code]!),
    stage_id: stageNumbers(stages),
  };
  yield { rows, columns };
}
