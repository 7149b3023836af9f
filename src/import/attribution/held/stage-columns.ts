import type { HeldColumns } from '../../../model/workbench.js';
import { direct, columnsByShape, worded } from './columns.js';
import { type HeldStages, type LabelColumn, stageNumbers } from './held-stages.js';
import type { StageWork } from './stage-work.js';

interface StagesInput {
  stages: HeldStages;
  work: StageWork;
  /** By code. */
  names: readonly string[];
  /** Texts of the column `kind`. */
  kinds: readonly string[];
}

export function stageColumns({ stages, work, names, kinds }: StagesInput): HeldColumns {
  const { own, folded, shape, shapes } = stages;
  const ofShape = columnsByShape(shape);
  const label = (name: LabelColumn) => (folded ? direct(folded[name]) : ofShape(shapes[name]));
  return {
    stage_id: direct(stageNumbers(stages)),
    parent_id: direct(own.parent_id),
    phase_id: direct(own.phase_id),
    kind: folded ? worded(kinds, (row) => folded.kind[row]!) : ofShape(shapes['kind'], kinds),
    raw_name: ofShape(shapes['name'], names),
    step_index: direct(own.step_index),
    iteration: direct(own.iteration),
    start_ns: direct(own.start_ns),
    end_ns: direct(own.end_ns),
    pid: ofShape(shapes['pid']),
    tid: ofShape(shapes['tid']),
    rank: ofShape(shapes['rank']),
    batch_size: label('batch_size'),
    new_tokens: label('new_tokens'),
    context_tokens_sum: label('context_tokens_sum'),
    warmup: direct(own.warmup),
    confidence: ofShape(shapes['confidence']),
    device: direct(work.device),
    device_start_ns: direct(work.device_start_ns),
    device_end_ns: direct(work.device_end_ns),
  };
}
