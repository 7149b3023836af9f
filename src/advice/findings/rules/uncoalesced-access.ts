import { shortName } from '../counted-kernels.js';
import { counterRule } from '../counter-rule.js';
import { percent } from '../words.js';
import { formatQuantity } from '../../../vocabulary/format.js';

/** Of the sectors of 32 bytes that the threads asked for: below it, alignment at the edges alone does it. */
const leastExcess = 0.25;
const sectorBytes = 32;
/** % of DRAM's peak that reading in order reaches (H200: 90.6 % by ncu). */
const streamPercent = 92;
/** % of hits in L1 and in L2 up to which nothing is used twice. */
const gatherHits = 25;
/** A memory system less busy than this is not what the kernel waits for. */
const leastBusy = 25;

/** Global memory read or written in pieces: threads of a warp touch bytes far apart. */
export const uncoalescedAccess = counterRule(
  {
    id: 'uncoalesced_access',
    title: 'Uncoalesced access to global memory',
    docs: {
      finds:
        'Neighbouring threads read or write addresses far apart, so most bytes of each sector are moved in vain.',
      needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
      gain: 'The time in which memory is busy, in proportion to the sectors that were not asked for; low end half of it.',
      change: 'Let neighbouring threads take neighbouring addresses, or transpose through shared memory.',
      withheld: 'less than 25 % of the sectors, a memory system less than 25 % busy, or a gather by index',
    },
    references: [
      {
        title: 'CUDA C++ Best Practices: coalesced access to global memory',
        url: 'https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory',
      },
    ],
  },
  {
    condition: {
      metrics: {
        sectors: 'memory_l2_theoretical_sectors_global',
        ideal: 'memory_l2_theoretical_sectors_global_ideal',
        excessive: 'derived__memory_l2_theoretical_sectors_global_excessive',
        memory_percent: 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed',
        sm_percent: 'sm__throughput.avg.pct_of_peak_sustained_elapsed',
        dram_percent: 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
        dram_read_bytes: 'dram__bytes_read.sum',
        l1_hit_percent: 'l1tex__t_sector_hit_rate.pct',
        l2_hit_percent: 'lts__t_sector_hit_rate.pct',
      },
      derived: {
        // Sectors moved that no thread asked for: a warp's 32 addresses lie in more sectors than they fill.
        excess:
          'CASE WHEN sectors > 0 AND ideal IS NOT NULL THEN greatest(0, 1 - ideal / sectors) ELSE excessive / nullif(excessive + ideal, 0) END',
        // No sector is ever used again: a gather by index. The accesses of a warp have nothing that could be brought together.
        is_gather: `(coalesce(l1_hit_percent <= ${gatherHits} AND l2_hit_percent <= ${gatherHits}, false))::INTEGER`,
      },
      where: `excess >= ${leastExcess} AND coalesce(memory_percent, 100) >= ${leastBusy} AND is_gather = 0`,
    },
    told: {
      column: 'excess',
      otherwise: 'ncu did not collect the sectors of global accesses (section SourceCounters, --set full).',
    },
    none: `No profiled kernel of 5 µs and more moves over ${percent(leastExcess)} of its sectors for nothing (gathers by index aside, which use no sector again).`,
    // The time that the memory system is busy shrinks with the sectors moved; latencies and compute stay, and DRAM moves each
    // byte that is asked for once, at best at the share of its peak that streams reach.
    saving(row) {
      const wasted = row.excess!;
      const busy = Math.min(1, (row.memory_percent ?? 50) / 100);
      const asked = row.ideal === null ? null : row.ideal * sectorBytes;
      const dramBytes = asked === null || !row.dram_read_bytes ? 1 : Math.min(1, asked / row.dram_read_bytes);
      const dram = ((row.dram_percent ?? 0) / streamPercent) * dramBytes;
      const left = Math.max(1 - wasted * busy, dram, (row.sm_percent ?? 0) / 100);
      const expected = Math.max(0, 1 - left);
      return { low: expected / 2, expected, high: Math.max(expected, wasted) };
    },
    evidence: ({ kernel_name: name, excess }) =>
      `${percent(excess!)} of the sectors that ${shortName(name)} moves hold nothing that it asked for`,
    title: ({ kernel_name: name, excess }) =>
      `Uncoalesced access: ${percent(excess!)} of the sectors that ${shortName(name)} moves hold nothing it asked for`,
    cause: ({ memory_percent: busy }, place) =>
      `Threads of a warp touch addresses far apart (a transposed or strided layout), so each access moves whole sectors of 32 bytes for a few bytes of use${busy === null ? '' : `; memory is ${formatQuantity(busy, '%')} busy with it`}. ${place}`,
    change: {
      kind: 'code',
      text: 'Let neighbouring threads take neighbouring addresses: index the contiguous dimension by the thread, make the tensor contiguous once outside the loop, or transpose through shared memory.',
      example: 'x = x.contiguous()  # once; in Triton: tl.arange over the dimension of stride 1',
    },
    assumption:
      'The time that memory is busy shrinks with the sectors moved; latencies and compute stay. Low: half of it; high: the whole kernel shrinks with its sectors.',
  },
);
