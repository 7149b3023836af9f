import type { HeldColumns } from '../../../model/workbench.js';
import { computed, direct, ofShapes } from './columns.js';
import type { HeldStages } from './held-stages.js';
import type { StageWork } from './stage-work.js';

export interface StagesInput {
  stages: HeldStages;
  /** Stages that only hold numbered ones. */
  containers: ReadonlySet<number>;
  work: StageWork;
  /** By code. */
  names: readonly string[];
  /** Texts of the column `kind`. */
  kinds: readonly string[];
}

export function stageColumns({ stages, containers, work, names, kinds }: StagesInput): HeldColumns {
  const { own, shape, shapes } = stages;
  const ofShape = ofShapes(shape);
  return {
    stage_id: computed((row) => row + 1),
    parent_id: direct(own.parent_id),
    phase_id: direct(own.phase_id),
    kind: ofShape(shapes['kind'], kinds),
    raw_name: ofShape(shapes['name'], names),
    step_index: computed((row) => (containers.has(row + 1) ? Number.NaN : own.step_index[row]!)),
    iteration: direct(own.iteration),
    start_ns: direct(own.start_ns),
    end_ns: direct(own.end_ns),
    pid: ofShape(shapes['pid']),
    tid: ofShape(shapes['tid']),
    rank: ofShape(shapes['rank']),
    batch_size: ofShape(shapes['batch_size']),
    new_tokens: ofShape(shapes['new_tokens']),
    context_tokens_sum: ofShape(shapes['context_tokens_sum']),
    warmup: direct(own.warmup),
    device: direct(work.device),
    device_start_ns: direct(work.device_start_ns),
    device_end_ns: direct(work.device_end_ns),
  };
}
