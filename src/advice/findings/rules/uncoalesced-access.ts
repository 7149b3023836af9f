import { counterRule } from '../counter-rule.js';
import { percent } from '../words.js';
import { formatQuantity } from '../../../vocabulary/format.js';

/** Share of the moved 32-byte sectors: below it, misaligned edges explain the excess. */
const minExcess = 0.25;
const sectorBytes = 32;
/** % of DRAM's peak that sequential reads reach (H200: 90.6 % by ncu). */
const streamPercent = 92;
/** % hits in L1 and L2 up to which data counts as not reused. */
const maxGatherHitPercent = 25;
/** Below this % busy, the memory system does not limit the kernel. */
const minBusyPercent = 25;

/** Threads of a warp access global-memory addresses far apart. */
export const uncoalescedAccess = counterRule(
  {
    id: 'uncoalesced_access',
    title: 'Uncoalesced access to global memory',
    docs: {
      finds:
        'Neighboring threads read or write addresses far apart, so most bytes of each sector are moved without use.',
      needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
      gain: 'The memory busy time, in proportion to the unrequested sectors; low end half of it.',
      change: 'Let neighboring threads take neighboring addresses, or transpose through shared memory.',
      withheld:
        'less than 25 % of the sectors are unused, a memory system less than 25 % busy, or a gather by index',
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
        // Excess sectors: a warp's 32 addresses lie in more sectors than they fill.
        excess:
          'CASE WHEN sectors > 0 AND ideal IS NOT NULL THEN greatest(0, 1 - ideal / sectors) ELSE excessive / nullif(excessive + ideal, 0) END',
        // Without reuse of sectors it is a gather by index, which cannot be coalesced.
        is_gather: `(coalesce(l1_hit_percent <= ${maxGatherHitPercent} AND l2_hit_percent <= ${maxGatherHitPercent}, false))::INTEGER`,
      },
      where: `excess >= ${minExcess} AND coalesce(memory_percent, 100) >= ${minBusyPercent} AND is_gather = 0`,
    },
    known: {
      column: 'excess',
      otherwise: 'ncu did not collect the sectors of global accesses (section SourceCounters, --set full).',
    },
    notFired: `No profiled kernel of 5 µs and more that keeps memory busy moves over ${percent(minExcess)} of its sectors without use (except gathers by index, which do not reuse sectors).`,
    // Memory busy time shrinks with the sectors moved; latencies and compute stay, and DRAM moves each requested byte once, at
    // most at the share of its peak that sequential reads reach.
    saving(row) {
      const wasted = row.excess!;
      const busy = Math.min(1, (row.memory_percent ?? 50) / 100);
      const requestedBytes = row.ideal === null ? null : row.ideal * sectorBytes;
      const dramBytes =
        requestedBytes === null || !row.dram_read_bytes
          ? 1
          : Math.min(1, requestedBytes / row.dram_read_bytes);
      const dram = ((row.dram_percent ?? 0) / streamPercent) * dramBytes;
      const remaining = Math.max(1 - wasted * busy, dram, (row.sm_percent ?? 0) / 100);
      const expected = Math.max(0, 1 - remaining);
      return { low: expected / 2, expected, high: Math.max(expected, wasted) };
    },
    evidence: ({ excess }, kernel) =>
      `${percent(excess!)} of the sectors that ${kernel} moves were not requested`,
    title: ({ excess }, kernel) =>
      `Uncoalesced access: ${percent(excess!)} of the sectors that ${kernel} moves were not requested`,
    cause: ({ memory_percent: busy }, place) =>
      `Threads of a warp touch addresses far apart (a transposed or strided layout), so each access moves whole sectors of 32 bytes for a few useful bytes${busy === null ? '' : `; memory is ${formatQuantity(busy, '%')} busy with it`}. ${place}`,
    change: {
      kind: 'code',
      text: 'Let neighboring threads access neighboring addresses: index the contiguous dimension by the thread, make the tensor contiguous once outside the loop, or transpose through shared memory.',
      example: 'x = x.contiguous()  # once; in Triton: tl.arange over the dimension of stride 1',
    },
    assumption:
      'Memory busy time shrinks with the sectors moved; latencies and compute stay. Low: half of it; high: the whole kernel shrinks with its sectors.',
  },
);
