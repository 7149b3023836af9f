import { gainOf } from '../gain.js';
import type { CountersResult, KernelCounters } from '../../../model/documents/counters.js';
import {
  type CountedKernel,
  minKernelNs,
  placeWords,
  savingsByStage,
  type StageSaving,
} from '../counted-kernels.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { classBars } from '../stage-rule.js';
import { countersOf } from '../session-analyses.js';
import { formatPercent, formatQuantity, plural, formatNs } from '../../../vocabulary/format.js';

/** Theoretical occupancy below which latency is not hidden (NVIDIA's Occupancy rule uses a higher threshold). */
const maxLowOccupancyPercent = 50;
/** Above this share of a peak more warps do not help (NVIDIA's SpeedOfLight). */
const nearPeakPercent = 80;
/** Random single-sector reads reach at most half of the DRAM rate, because each opens a row (H200, 64 warps per SM: 51 % by ncu). */
const scatteredPeakPercent = 50;
/** The counter of an idle tensor pipe is slightly above 0. */
const minTensorPercent = 0.5;
/** Compute and memory below it: latency-bound (NVIDIA's SpeedOfLight). */
const maxLatencyPercent = 60;

type Limiter = 'grid' | 'registers' | 'shared memory' | 'block size (warps)' | 'blocks per SM' | 'barriers';

interface LimitedKernel extends CountedKernel {
  limiter: Limiter;
  text: string;
}

const changes: Record<Limiter, { text: string; example: string | null }> = {
  grid: {
    text: 'Give the kernel more blocks: split the reduction or the sequence over blocks (split-K, flash decoding), use smaller tiles, or batch more work into one launch.',
    example: 'num_splits > 1, or SPLIT_K in the Triton kernel',
  },
  registers: {
    text: 'Use fewer registers per thread: smaller tiles per thread, less unrolling, or launch bounds for the compiler.',
    example: '__launch_bounds__(256, 4), or Triton: num_warps=8 and a smaller BLOCK',
  },
  'shared memory': {
    text: 'Use less shared memory per block: fewer pipeline stages or smaller tiles.',
    example: 'Triton: num_stages=2, or half the BLOCK_K',
  },
  'block size (warps)': {
    text: 'Choose a block size that divides the warps per SM.',
    example: 'a block of 256 threads instead of 1024',
  },
  'blocks per SM': {
    text: 'Use larger blocks: an SM holds at most 16 to 32 blocks, depending on the GPU, regardless of their size.',
    example: 'a block of 128 or 256 threads instead of 32; Triton: num_warps=4',
  },
  barriers: { text: 'Use fewer named barriers per block.', example: null },
};

/** Users cannot choose grid and block of a library kernel, only another kernel or more work per launch. */
function changeInLibrary(name: string, limiter: Limiter): { text: string; example: string | null } | null {
  if (/nvjet|cutlass|cublas|xmma|gemm|gemv|^Cijk/i.test(name))
    return limiter === 'grid'
      ? {
          text: 'Give the GEMM more work per launch: more sequences per step, or one GEMM for query, key and value and one for gate and up projection.',
          example: 'qkv = F.linear(x, torch.cat([wq, wk, wv]))  # weights joined once, at load time',
        }
      : {
          text: 'Let the library try other kernels for this shape.',
          example: 'torch.compile(model, mode="max-autotune")',
        };
  if (/cudnn|flash|fmha|attention|sdpa/i.test(name))
    return {
      text: 'Use an attention kernel that splits the sequence over blocks (flash decoding), or decode more sequences per step.',
      example: 'FlashInfer, or flash_attn_with_kvcache(q, k, v, num_splits=0)',
    };
  if (/\bat::/.test(name))
    return {
      text: 'Fuse the kernel with its neighbors, or give it more rows in one launch: PyTorch chose its grid by the size of the tensor.',
      example: 'torch.compile(model)',
    };
  return null;
}

/** Latency-bound kernels with few active warps, and the limiter of further warps. */
export const lowOccupancy: Rule = {
  id: 'low_occupancy',
  title: 'Low occupancy',
  docs: {
    finds: 'Kernels are latency-bound with most warp slots of the GPU empty; the finding names the limiter.',
    needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
    gain: "Little's law: speed grows with the warps in flight until the next resource or a peak limits it; low end half of that.",
    change:
      'Depends on the limiter: more blocks, fewer registers, less shared memory, another block size, or another kernel of the library.',
    withheld:
      'kernels near a peak, kernels limited by something else, or less than 2 % of the time would be saved',
  },
  references: [
    {
      title: 'Nsight Compute: occupancy',
      url: 'https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#occupancy',
    },
  ],
  async find(context) {
    const counters = await countersOf(context);
    if (!counters || counters.kernels.length === 0)
      return { outcome: 'not_applicable', why: 'The session has no hardware counters (ncu).' };
    const sms = counters.devices[0]?.sm_count ?? null;
    const limited = counters.kernels.flatMap((kernel) => findLimiter(kernel, sms) ?? []);
    const findings: FoundDraft[] = [];
    for (const limiter of new Set(limited.map((kernel) => kernel.limiter))) {
      const limitedBySame = limited.filter((kernel) => kernel.limiter === limiter);
      const [largest] = await savingsByStage(context, counters, limitedBySame);
      if (largest) findings.push(await finding(context, largest, limiter, limitedBySame));
    }
    if (findings.length > 0) return { outcome: 'fired', findings };
    return { outcome: 'not_fired', why: whyNot(counters, limited) };
  },
};

function whyNot({ kernels }: CountersResult, limited: readonly LimitedKernel[]): string {
  return limited.length === 0
    ? `None of ${plural(kernels.length, 'profiled kernel')} takes 5 µs or more and is latency-bound with few warps.`
    : `Of ${plural(kernels.length, 'profiled kernel')}, ${limited.length} with low occupancy: changes would save less than 2 % of the time.`;
}

/** Null if it is not latency-bound, or if nothing limits its warps. */
function findLimiter(kernel: KernelCounters, sms: number | null): LimitedKernel | null {
  const { duration_ns, bound, occupancy, waves } = kernel;
  if (duration_ns.value === null || duration_ns.value < minKernelNs || bound.by !== 'latency') return null;
  const busiest = Math.max(kernel.sm_throughput.value ?? 0, kernel.memory_throughput.value ?? 0);
  const base = {
    name: kernel.name,
    grid: kernel.grid,
    launches: kernel.launches,
    duration_ns: duration_ns.value,
  };
  const blocks = blocksOf(kernel.grid);
  if (sms !== null && blocks !== null && blocks < sms) {
    const text = `${plural(blocks, 'block')} for ${sms} SMs`;
    return { ...base, limiter: 'grid', text, saving: moreWarps(blocks / sms, 1, busiest, nearPeakPercent) };
  }
  // A last wave that fills few SMs lowers every mean: while its blocks run, the kernel is busier than the mean.
  const waveFactor = waves.value === null || waves.value <= 0 ? 1 : Math.ceil(waves.value) / waves.value;
  if (busiest * waveFactor >= maxLatencyPercent) return null;
  // Tensor-core kernels hide latency with prefetching copies, not warps: one block per SM is their design. If the counter was not
  // collected, the kernel may be one of them.
  if ((kernel.tensor_pipe.value ?? minTensorPercent) >= minTensorPercent) return null;
  const { theoretical, achieved, limited_by: by } = occupancy;
  if (theoretical.value === null || theoretical.value >= maxLowOccupancyPercent || by.length === 0)
    return null;
  // Without this limiter the next resource limits the warps.
  const [tightest = 1, next = 2 * tightest] = [...new Set(occupancy.limits.map(({ blocks }) => blocks))];
  const target = Math.min(100, (theoretical.value * next) / tightest);
  const text = `${formatQuantity(theoretical.value, '%')} of an SM's warps fit${achieved.value === null ? '' : ` (${formatQuantity(achieved.value, '%')} reached)`}, by ${by.join(' and ')}`;
  const peak = isScattered(kernel) ? scatteredPeakPercent : nearPeakPercent;
  return {
    ...base,
    limiter: by[0] as Limiter,
    text,
    saving: moreWarps(theoretical.value / 100, target / 100, busiest, peak),
  };
}

/** Random access without reuse: no cache hits. */
const isScattered = ({ l1_hit_rate: l1, l2_hit_rate: l2 }: KernelCounters): boolean =>
  l1.value !== null && l2.value !== null && l1.value <= 25 && l2.value <= 25;

function blocksOf(grid: string | null): number | null {
  const sizes = (grid ?? '').split(',').map(Number);
  return sizes.length > 0 && sizes.every((size) => size >= 1) ? sizes.reduce((x, y) => x * y, 1) : null;
}

/**
 * Little's law: the speed of a latency-bound kernel is proportional to its warps in flight, until a unit nears its peak. Low:
 * half of that gain.
 */
function moreWarps(
  now: number,
  then: number,
  busiestPercent: number,
  peakPercent: number,
): CountedKernel['saving'] {
  const expected = Math.max(0, 1 - Math.max(now / then, busiestPercent / peakPercent));
  return {
    low: expected / 2,
    expected,
    high: Math.max(expected, 1 - Math.max(now / then, busiestPercent / nearPeakPercent)),
  };
}

async function finding(
  context: FindingContext,
  saving: StageSaving,
  limiter: Limiter,
  kernels: readonly LimitedKernel[],
): Promise<FoundDraft> {
  const worst = kernels
    .filter((kernel) => saving.kernels.includes(kernel))
    .toSorted(
      (a, b) =>
        b.duration_ns * b.launches * b.saving.expected - a.duration_ns * a.launches * a.saving.expected,
    )[0]!;
  const names = [...new Set(saving.kernels.map(({ name }) => name))];
  const label = context.kernelLabel(worst.name);
  const { evidence } = await context.evidence<{ kernel_name: string; metric: string; value: number }>(
    `SELECT kernel_name, metric, avg(value) AS value, count(*) AS launches FROM counters
     WHERE kernel_name IN (${names.map((name) => `'${name.replaceAll("'", "''")}'`).join(', ')})
       AND regexp_matches(metric, '^(gpu__time_duration.sum|sm__warps_active.avg.pct_of_peak_sustained_active|sm__maximum_warps_per_active_cycle_pct|launch__(grid_size|registers_per_thread|waves_per_multiprocessor|occupancy_limit_.*)|(sm__throughput|gpu__compute_memory_throughput).avg.pct_of_peak_sustained_elapsed)$')
     GROUP BY ALL ORDER BY kernel_name, metric`,
    () => `${label}: ${worst.text}, ${formatNs(worst.duration_ns)} per launch under ncu.`,
  );
  const share = saving.kernel_ms / saving.total_ms;
  return {
    stage: saving.stage,
    title:
      limiter === 'grid'
        ? `Low occupancy: ${label} has ${worst.text} and is latency-bound`
        : `Low occupancy: in ${label} ${worst.text}; it is latency-bound`,
    at_stake_ms: saving.expected_ms,
    share: saving.expected_ms / saving.total_ms,
    cause: `${saving.kernels.length === 1 ? 'One kernel' : `${saving.kernels.length} kernels`} (${formatPercent(share)} of ${placeWords(saving)}) ${saving.kernels.length === 1 ? 'keeps' : 'keep'} neither compute nor memory busy: too few warps are in flight to cover the latency of each access, because of ${limiter === 'grid' ? 'a grid smaller than the GPU' : limiter}.`,
    change: { kind: 'code', ...(changeInLibrary(worst.name, limiter) ?? changes[limiter]) },
    gain: gainOf(
      saving.total_ms,
      saving.expected_ms,
      limiter === 'grid'
        ? "Little's law: speed grows with the blocks in flight until every SM has one, or a unit reaches 80 % of its peak."
        : "Little's law: speed grows with the warps in flight, until the next resource limits them or a unit nears its peak (80 %, DRAM read in single sectors 50 %).",
      { low_ms: saving.low_ms, high_ms: saving.high_ms },
    ),
    confidence: 'medium',
    bars: saving.stage === null ? [] : classBars(context, saving.stage, [...saving.classes]),
    evidence: [evidence],
    check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
  };
}
