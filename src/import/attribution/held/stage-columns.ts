import type { HeldColumns } from '../../../model/workbench.js';
import type { FoldedStages } from '../nested-stages.js';
import { computed, direct, ofShapes, worded } from './columns.js';
import type { HeldStages } from './held-stages.js';
import type { StageWork } from './stage-work.js';

export interface StagesInput {
  stages: HeldStages;
  folded: FoldedStages;
  work: StageWork;
  /** By code. */
  names: readonly string[];
  /** Texts of the column `kind`. */
  kinds: readonly string[];
}

export function stageColumns({ stages, folded, work, names, kinds }: StagesInput): HeldColumns {
  const { own, shape, shapes } = stages;
  const ofShape = ofShapes(shape);
  const { phases, taken } = folded;
  const other = kinds.indexOf('other');
  const sizeOf = (name: 'batch_size' | 'new_tokens' | 'context_tokens_sum') =>
    taken.size === 0
      ? ofShape(shapes[name])
      : computed((row) => {
          const fields = taken.get(row + 1);
          return fields ? (fields[name] ?? Number.NaN) : shapes[name]![shape[row]!]!;
        });
  return {
    stage_id: computed((row) => row + 1),
    parent_id: direct(own.parent_id),
    phase_id:
      phases.size === 0
        ? direct(own.phase_id)
        : computed((row) => {
            const phase = phases.get(own.phase_id[row]!);
            return phase === undefined ? own.phase_id[row]! : (phase ?? Number.NaN);
          }),
    kind:
      phases.size === 0
        ? ofShape(shapes['kind'], kinds)
        : worded(kinds, (row) => {
            if (phases.has(row + 1)) return other;
            const fields = taken.get(row + 1);
            return fields ? kinds.indexOf(fields.kind) : shapes['kind']![shape[row]!]!;
          }),
    raw_name: ofShape(shapes['name'], names),
    step_index: computed((row) => {
      if (phases.has(row + 1)) return Number.NaN;
      const fields = taken.get(row + 1);
      return fields ? (fields.step_index ?? Number.NaN) : own.step_index[row]!;
    }),
    iteration: computed((row) => {
      const fields = taken.get(row + 1);
      return fields ? (fields.iteration ?? Number.NaN) : own.iteration[row]!;
    }),
    start_ns: direct(own.start_ns),
    end_ns: direct(own.end_ns),
    pid: ofShape(shapes['pid']),
    tid: ofShape(shapes['tid']),
    rank: ofShape(shapes['rank']),
    batch_size: sizeOf('batch_size'),
    new_tokens: sizeOf('new_tokens'),
    context_tokens_sum: sizeOf('context_tokens_sum'),
    warmup: direct(own.warmup),
    device: direct(work.device),
    device_start_ns: direct(work.device_start_ns),
    device_end_ns: direct(work.device_end_ns),
  };
}
