import { counterRule } from '../counter-rule.js';
import { percent } from '../words.js';
import { formatQuantity } from '../../../vocabulary/format.js';

/** Minimum share of shared-memory wavefronts added by conflicts: good kernels have a few conflicts, too. */
const minExcess = 0.3;
/** Minimum % of cycles in which the data stage of L1 and shared memory is busy: below it, conflicts cost no time. */
const minBusyPercent = 30;

/** Threads of a warp that access different words of one shared-memory bank are serialized. */
export const bankConflicts = counterRule(
  {
    id: 'bank_conflicts',
    title: 'Bank conflicts in shared memory',
    docs: {
      finds:
        'Threads of a warp access different words of one shared-memory bank, which serializes the accesses.',
      needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
      gain: 'The time in which the data stage of shared memory is busy, in proportion to the conflicts; low end half of it.',
      change: 'Pad rows by one word, or swizzle the columns.',
      withheld:
        'conflicts in less than 30 % of the passes through shared memory, or its data stage less than 30 % busy',
    },
    references: [
      {
        title: 'CUDA C++ Best Practices: shared memory and memory banks',
        url: 'https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks',
      },
    ],
  },
  {
    condition: {
      metrics: {
        wavefronts: 'l1tex__data_pipe_lsu_wavefronts_mem_shared.sum',
        ideal: 'memory_l1_wavefronts_shared_ideal',
        conflicts: 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum',
        data_stage_percent: 'l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed',
      },
      // Passes that conflicts add, as a share of all passes through shared memory.
      derived: {
        excess:
          'CASE WHEN wavefronts > 0 THEN least(1, greatest(0, coalesce(conflicts / wavefronts, 1 - ideal / wavefronts))) END',
      },
      where: `excess >= ${minExcess} AND coalesce(data_stage_percent, 100) >= ${minBusyPercent}`,
    },
    known: {
      column: 'excess',
      otherwise:
        'No profiled kernel of 5 µs and more uses shared memory, or ncu did not collect its wavefronts.',
    },
    notFired: `No profiled kernel has both ${percent(minExcess)} of its shared-memory passes in conflicts and a busy data stage.`,
    saving({ excess, data_stage_percent: busy }) {
      const expected = excess! * Math.min(1, (busy ?? 100) / 100);
      return { low: expected / 2, expected, high: excess! };
    },
    evidence: ({ excess, data_stage_percent: busy }, kernel) =>
      `${kernel}: ${percent(excess!)} of its passes through shared memory are conflicts, the data stage is ${busy === null ? 'busy to an unknown share' : `${formatQuantity(busy, '%')} busy`}`,
    title: ({ excess }, kernel) =>
      `Bank conflicts: ${percent(excess!)} of the shared-memory passes of ${kernel}`,
    cause: (_, place) =>
      `Threads of a warp address different words of the same bank (a row length that is a multiple of 32 words, read by column), so one access takes several passes. ${place}`,
    change: {
      kind: 'code',
      text: 'Pad the rows of the shared array by one word, or permute (swizzle) its columns by the row.',
      example: '__shared__ float tile[32][33];',
    },
    assumption: 'The busy time of the shared-memory data stage shrinks by the conflicts; the rest stays.',
  },
);
