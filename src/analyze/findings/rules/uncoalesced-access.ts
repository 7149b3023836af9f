import {
  type CountedKernel,
  leastKernelNs,
  placeWords,
  savingsByStage,
  shortName,
} from '../counted-kernels.js';
import { metricsByKernel, type MetricRow } from '../kernel-metrics.js';
import type { FoundDraft, Rule } from '../rule.js';
import { countersOf } from '../session-analyses.js';

/** Of the sectors of 32 bytes that the threads asked for: below it, alignment at the edges alone does it. */
const leastExcess = 0.25;
const sectorBytes = 32;
/** % of DRAM's peak that reading in order reaches (H200: 90.6 % by ncu). */
const streamPercent = 92;
/** % of hits in L1 and in L2 up to which nothing is used twice. */
const gatherHits = 25;
/** A memory system less busy than this is not what the kernel waits for. */
const leastBusy = 25;

const metrics = {
  sectors: 'memory_l2_theoretical_sectors_global',
  ideal: 'memory_l2_theoretical_sectors_global_ideal',
  excessive: 'derived__memory_l2_theoretical_sectors_global_excessive',
  memory_percent: 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed',
  sm_percent: 'sm__throughput.avg.pct_of_peak_sustained_elapsed',
  dram_percent: 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
  dram_read_bytes: 'dram__bytes_read.sum',
  l1_hit_percent: 'l1tex__t_sector_hit_rate.pct',
  l2_hit_percent: 'lts__t_sector_hit_rate.pct',
};
type Row = MetricRow<keyof typeof metrics>;

/** Share of the sectors moved that no thread asked for: a warp's 32 addresses lie in more sectors than they fill. */
function excess({ sectors, ideal, excessive }: Row): number | null {
  if (sectors !== null && sectors > 0 && ideal !== null) return Math.max(0, 1 - ideal / sectors);
  if (excessive !== null && ideal !== null && excessive + ideal > 0) return excessive / (excessive + ideal);
  return null;
}

/** Global memory read or written in pieces: threads of a warp touch bytes far apart. */
export const uncoalescedAccess: Rule = {
  id: 'uncoalesced_access',
  title: 'Uncoalesced access to global memory',
  references: [
    {
      title: 'CUDA C++ Best Practices: coalesced access to global memory',
      url: 'https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory',
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
              `${shortName(row.kernel_name)} moves ${percent(excess(row)!)} more sectors than its bytes need filled`,
          )
          .join('; '),
      (row) => {
        const share = excess(row);
        told ||= share !== null;
        return (
          share !== null && share >= leastExcess && (row.memory_percent ?? 100) >= leastBusy && !isGather(row)
        );
      },
    );
    if (!told)
      return {
        outcome: 'not_applicable',
        why: 'ncu did not collect the sectors of global accesses (section SourceCounters, --set full).',
      };
    const kernels = rows.map((row): CountedKernel => ({
      ...row,
      name: row.kernel_name,
      saving: savingOf(row),
    }));
    const [largest] = await savingsByStage(context, counters, kernels);
    if (!largest) {
      const why =
        rows.length === 0
          ? `No profiled kernel of 5 µs and more moves over ${percent(leastExcess)} of its sectors for nothing (gathers by index aside, which use no sector again).`
          : 'Kernels with scattered accesses have under 2 % of the time at stake.';
      return { outcome: 'not_fired', why };
    }
    const worst = rows.find(({ kernel_name: name }) => largest.kernels.some((one) => one.name === name))!;
    const wasted = excess(worst)!;
    const finding: FoundDraft = {
      stage: largest.stage,
      title: `Uncoalesced access: ${percent(wasted)} of the sectors that ${shortName(worst.kernel_name)} moves hold nothing it asked for`,
      at_stake_ms: largest.expected_ms,
      cause: `Threads of a warp touch addresses far apart (a transposed or strided layout), so each access moves whole sectors of 32 bytes for a few bytes of use; memory is ${Math.round(worst.memory_percent ?? 0)} % busy with it. These kernels take ${percent(largest.kernel_ms / largest.whole_ms)} of ${placeWords(largest)}.`,
      change: {
        kind: 'code',
        text: 'Let neighbouring threads take neighbouring addresses: index the contiguous dimension by the thread, make the tensor contiguous once outside the loop, or transpose through shared memory.',
        example: 'x = x.contiguous()  # once; in Triton: tl.arange over the dimension of stride 1',
      },
      gain: {
        expected_ms: largest.expected_ms,
        low_ms: largest.low_ms,
        high_ms: largest.high_ms,
        after_ms: largest.whole_ms - largest.expected_ms,
        assumption:
          'The time that memory is busy shrinks with the sectors moved; latencies and compute stay. Low: half of it; high: the whole kernel shrinks with its sectors.',
        what_if: null,
      },
      confidence: 'medium',
      bars: [],
      evidence: [evidence],
      check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
    };
    return { outcome: 'fired', findings: [finding] };
  },
};

const percent = (share: number) => `${Math.round(100 * share)} %`;

/**
 * Whether no sector is ever used again: then the rest of it is of no use to anyone (a gather by index), and bringing the
 * accesses of a warp together has nothing to bring together.
 */
const isGather = ({ l1_hit_percent: l1, l2_hit_percent: l2 }: Row): boolean =>
  l1 !== null && l2 !== null && l1 <= gatherHits && l2 <= gatherHits;

/**
 * The time that the memory system is busy shrinks with the sectors moved; latencies and compute stay, and DRAM moves each
 * byte that is asked for once, at best at the share of its peak that streams reach.
 */
function savingOf(row: Row): CountedKernel['saving'] {
  const wasted = excess(row)!;
  const busy = Math.min(1, (row.memory_percent ?? 50) / 100);
  const asked = row.ideal === null ? null : row.ideal * sectorBytes;
  const dramBytes = asked === null || !row.dram_read_bytes ? 1 : Math.min(1, asked / row.dram_read_bytes);
  const dram = ((row.dram_percent ?? 0) / streamPercent) * dramBytes;
  const left = Math.max(1 - wasted * busy, dram, (row.sm_percent ?? 0) / 100);
  const expected = Math.max(0, 1 - left);
  return { low: expected / 2, expected, high: Math.max(expected, wasted) };
}
