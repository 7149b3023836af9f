import type { InMemoryColumns } from '../../../model/workbench.js';
import { directColumn, columnsByShape, textColumn } from './columns.js';
import { type InMemoryStages, type LabelColumn, stageNumbers } from './stages.js';
import type { StageWork } from './stage-work.js';

interface StagesInput {
  stages: InMemoryStages;
  work: StageWork;
  /** Indexed by name code. */
  names: readonly string[];
  /** Texts of the column `kind`. */
  kinds: readonly string[];
}

export function stageColumns({ stages, work, names, kinds }: StagesInput): InMemoryColumns {
  const { stageValues: values, folded, shape, shapes } = stages;
  const perShape = columnsByShape(shape);
  const label = (name: LabelColumn) => (folded ? directColumn(folded[name]) : perShape(shapes[name]));
  return {
    stage_id: directColumn(stageNumbers(stages)),
    parent_id: directColumn(values.parent_id),
    phase_id: directColumn(values.phase_id),
    kind: folded ? textColumn(kinds, (row) => folded.kind[row]!) : perShape(shapes['kind'], kinds),
    raw_name: perShape(shapes['name'], names),
    step_index: directColumn(values.step_index),
    iteration: directColumn(values.iteration),
    start_ns: directColumn(values.start_ns),
    end_ns: directColumn(values.end_ns),
    pid: perShape(shapes['pid']),
    tid: perShape(shapes['tid']),
    rank: perShape(shapes['rank']),
    batch_size: label('batch_size'),
    new_tokens: label('new_tokens'),
    context_tokens_sum: label('context_tokens_sum'),
    warmup: directColumn(values.warmup),
    confidence: perShape(shapes['confidence']),
    device: directColumn(work.device),
    device_start_ns: directColumn(work.device_start_ns),
    device_end_ns: directColumn(work.device_end_ns),
  };
}
