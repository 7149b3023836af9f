import type { HeldColumns } from '../../../model/workbench.js';
import type { stageColumns as sweptColumns } from '../host-sweep.js';
import { asCodes, computed, direct } from './columns.js';
import type { StageWork } from './stage-work.js';

type SweptColumn = (typeof sweptColumns)[number];

export interface StagesInput {
  /** As the host sweep made them; row n is stage n + 1. */
  swept: Record<SweptColumn, Float64Array>;
  /** Stages that only hold numbered ones. */
  containers: ReadonlySet<number>;
  work: StageWork;
  /** By code. */
  names: readonly string[];
  /** Texts of the column `kind`. */
  kinds: readonly string[];
}

export function stageColumns({ swept, containers, work, names, kinds }: StagesInput): HeldColumns {
  const of = (name: SweptColumn) => direct(swept[name]);
  const coded = (name: SweptColumn, texts: readonly string[]) => ({
    source: asCodes({ numbers: (from, count) => swept[name].subarray(from, from + count) }),
    texts,
  });
  return {
    stage_id: of('stage_id'),
    parent_id: of('parent_id'),
    phase_id: of('phase_id'),
    kind: coded('kind', kinds),
    raw_name: coded('name', names),
    step_index: computed((row) => (containers.has(row + 1) ? Number.NaN : swept.step_index[row]!)),
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
  };
}
