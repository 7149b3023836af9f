import {
  type CountedKernel,
  leastKernelNs,
  placeWords,
  savingsByStage,
  shortName,
} from '../counted-kernels.js';
import { metricsByKernel, type MetricRow } from '../kernel-metrics.js';
import type { Rule } from '../rule.js';
import { countersOf } from '../session-analyses.js';

/** Of the wavefronts of shared memory: a few conflicts are in every good kernel. */
const leastExcess = 0.3;
/** % of the cycles in which the data stage of L1 and shared memory works: below it conflicts cost nothing. */
const leastBusy = 30;

const metrics = {
  wavefronts: 'l1tex__data_pipe_lsu_wavefronts_mem_shared.sum',
  ideal: 'memory_l1_wavefronts_shared_ideal',
  conflicts: 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum',
  data_stage_percent: 'l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed',
};
type Row = MetricRow<keyof typeof metrics>;

/** Share of the passes through shared memory that conflicts add. */
function excess({ wavefronts, ideal, conflicts }: Row): number | null {
  if (wavefronts === null || wavefronts === 0) return null;
  if (conflicts !== null) return Math.min(1, conflicts / wavefronts);
  return ideal === null ? null : Math.max(0, 1 - ideal / wavefronts);
}

/** Threads of a warp that read different words of one bank of shared memory take turns. */
export const bankConflicts: Rule = {
  id: 'bank_conflicts',
  title: 'Bank conflicts in shared memory',
  references: [
    {
      title: 'CUDA C++ Best Practices: shared memory and memory banks',
      url: 'https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks',
    },
  ],
  async find(context) {
    const counters = await countersOf(context);
    if (!counters || counters.kernels.length === 0)
      return { outcome: 'not_applicable', why: 'The session has no hardware counters (ncu).' };
    let told = false;
    const { rows, evidence } = await metricsByKernel(
      context,
      metrics,
      leastKernelNs,
      (found) =>
        found
          .slice(0, 3)
          .map(
            (row) =>
              `${shortName(row.kernel_name)}: ${percent(excess(row)!)} of its passes through shared memory are conflicts, the data stage is ${Math.round(row.data_stage_percent ?? 0)} % busy`,
          )
          .join('; '),
      (row) => {
        const share = excess(row);
        told ||= share !== null;
        return share !== null && share >= leastExcess && (row.data_stage_percent ?? 100) >= leastBusy;
      },
    );
    if (!told)
      return {
        outcome: 'not_applicable',
        why: 'No profiled kernel of 5 µs and more uses shared memory, or ncu did not collect its wavefronts.',
      };
    const kernels = rows.map((row): CountedKernel => ({
      ...row,
      name: row.kernel_name,
      saving: savingOf(row),
    }));
    const [largest] = await savingsByStage(context, counters, kernels);
    if (!largest) {
      const why = `No profiled kernel has both ${percent(leastExcess)} of its shared-memory passes in conflicts and a data stage that is busy with them.`;
      return { outcome: 'not_fired', why };
    }
    const worst = rows.find(({ kernel_name: name }) => largest.kernels.some((one) => one.name === name))!;
    return {
      outcome: 'fired',
      findings: [
        {
          stage: largest.stage,
          title: `Bank conflicts: ${percent(excess(worst)!)} of the shared-memory passes of ${shortName(worst.kernel_name)}`,
          at_stake_ms: largest.expected_ms,
          cause: `Threads of a warp address different words of the same bank (a row length that is a multiple of 32 words, read by column), so one access takes several passes. These kernels take ${percent(largest.kernel_ms / largest.whole_ms)} of ${placeWords(largest)}.`,
          change: {
            kind: 'code',
            text: 'Pad the rows of the shared array by one word, or permute (swizzle) its columns by the row.',
            example: '__shared__ float tile[32][33];',
          },
          gain: {
            expected_ms: largest.expected_ms,
            low_ms: largest.low_ms,
            high_ms: largest.high_ms,
            after_ms: largest.whole_ms - largest.expected_ms,
            assumption:
              'The time in which the data stage of shared memory works shrinks by the conflicts; the rest stays.',
            what_if: null,
          },
          confidence: 'medium',
          bars: [],
          evidence: [evidence],
          check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
        },
      ],
    };
  },
};

const percent = (share: number) => `${Math.round(100 * share)} %`;

function savingOf(row: Row): CountedKernel['saving'] {
  const share = excess(row)!;
  const expected = share * Math.min(1, (row.data_stage_percent ?? 100) / 100);
  return { low: expected / 2, expected, high: share };
}
