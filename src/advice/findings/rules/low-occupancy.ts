import type { CountersResult, KernelCounters } from '../../../model/documents/counters.js';
import {
  type CountedKernel,
  leastKernelNs,
  placeWords,
  savingsByStage,
  shortName,
  type StageSaving,
} from '../counted-kernels.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { classBars } from '../stage-rule.js';
import { countersOf } from '../session-analyses.js';
import { formatPercent, formatQuantity } from '../../../vocabulary/format.js';

/** An SM that can hold fewer of its warps hides less latency than one half needs (NVIDIA's rule Occupancy asks for more). */
const fewWarps = 50;
/** Beyond this share of a peak no further warp helps (NVIDIA's SpeedOfLight). */
const nearPeak = 80;
/** DRAM gives single sectors from anywhere at half its rate at best: each opens a row (H200, 64 warps an SM: 51 % by ncu). */
const scatteredPeak = 50;
/** The counter of an idle tensor pipe is not quite 0. */
const tensorPercent = 0.5;
/** Both sides under it: latency (NVIDIA's SpeedOfLight). */
const latencyPercent = 60;

type Limiter =
  'grid' | 'registers' | 'shared memory' | 'block size (warps)' | 'blocks an SM holds' | 'barriers';

interface Limited extends CountedKernel {
  limiter: Limiter;
  text: string;
}

const changes: Record<Limiter, { text: string; example: string | null }> = {
  grid: {
    text: 'Give the kernel more blocks: split the reduction or the sequence over blocks (split-K, flash decoding), use smaller tiles, or batch more work into one launch.',
    example: 'num_splits > 1, or SPLIT_K in the Triton kernel',
  },
  registers: {
    text: 'Use fewer registers a thread: smaller tiles a thread, less unrolling, or a bound that the compiler must keep.',
    example: '__launch_bounds__(256, 4), or Triton: num_warps=8 and a smaller BLOCK',
  },
  'shared memory': {
    text: 'Use less shared memory a block: fewer pipeline stages or smaller tiles.',
    example: 'Triton: num_stages=2, or half the BLOCK_K',
  },
  'block size (warps)': {
    text: 'Choose a block size that divides the warps an SM holds.',
    example: 'a block of 256 threads instead of 1024',
  },
  'blocks an SM holds': {
    text: 'Use larger blocks: an SM holds at most 32 of them, however few threads they have.',
    example: 'a block of 128 or 256 threads instead of 32; Triton: num_warps=4',
  },
  barriers: { text: 'Use fewer named barriers a block.', example: null },
};

/** Its grid and block are nobody's to choose: what can be chosen is the library's kernel, and how much it gets to do. */
function ofLibrary(name: string, limiter: Limiter): { text: string; example: string | null } | null {
  if (/nvjet|cutlass|cublas|xmma|gemm|gemv|^Cijk/i.test(name))
    return limiter === 'grid'
      ? {
          text: 'Give the product more to do in one launch: more sequences a step, or one product for query, key and value and one for gate and up projection.',
          example:
            'qkv = F.linear(x, torch.cat([wq, wk, wv]))  # weights joined once, when the model is loaded',
        }
      : {
          text: 'Let the library try other kernels for this shape.',
          example: 'torch.compile(model, mode="max-autotune")',
        };
  if (/cudnn|flash|fmha|attention|sdpa/i.test(name))
    return {
      text: 'Use an attention kernel that splits the sequence over blocks (flash decoding), or decode more sequences a step.',
      example: 'FlashInfer, or flash_attn_with_kvcache(q, k, v, num_splits=0)',
    };
  if (/\bat::/.test(name))
    return {
      text: 'Fuse the kernel with its neighbours, or give it more rows in one launch: PyTorch chose its grid by the size of the tensor.',
      example: 'torch.compile(model)',
    };
  return null;
}

/** Kernels that leave the GPU's warps empty while they wait for latencies, and what keeps further warps out. */
export const lowOccupancy: Rule = {
  id: 'low_occupancy',
  title: 'Low occupancy',
  docs: {
    finds:
      'Kernels leave most warps of the GPU empty while they wait for latency; the finding names what keeps warps out.',
    needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
    gain: "Little's law: speed grows with the warps in flight until the next resource or a peak limits it; low end half of that.",
    change:
      'Depends on the limiter: more blocks, fewer registers, less shared memory, another block size, or another kernel of the library.',
    withheld: 'kernels near a peak, kernels limited by something else, or under 2 % of the time at stake',
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
    const limited = counters.kernels.flatMap((kernel) => limitedBy(kernel, sms) ?? []);
    const findings: FoundDraft[] = [];
    for (const limiter of new Set(limited.map((kernel) => kernel.limiter))) {
      const own = limited.filter((kernel) => kernel.limiter === limiter);
      const [largest] = await savingsByStage(context, counters, own);
      if (largest) findings.push(await finding(context, largest, limiter, own));
    }
    if (findings.length > 0) return { outcome: 'fired', findings };
    return { outcome: 'not_fired', why: whyNot(counters, limited) };
  },
};

function whyNot({ kernels }: CountersResult, limited: readonly Limited[]): string {
  return limited.length === 0
    ? `None of ${kernels.length} profiled kernels of 5 µs and more both waits for latencies and has its warps limited.`
    : `${limited.length} of ${kernels.length} profiled kernels have low occupancy, with under 2 % of the time at stake.`;
}

/** Null where it is not latency that it waits for, or nothing keeps warps out. */
function limitedBy(kernel: KernelCounters, sms: number | null): Limited | null {
  const { duration_ns, bound, occupancy, waves } = kernel;
  if (duration_ns.value === null || duration_ns.value < leastKernelNs || bound.by !== 'latency') return null;
  const busiest = Math.max(kernel.sm_throughput.value ?? 0, kernel.memory_throughput.value ?? 0);
  const base = {
    name: kernel.name,
    grid: kernel.grid,
    launches: kernel.launches,
    duration_ns: duration_ns.value,
  };
  const blocks = blocksOf(kernel.grid);
  if (sms !== null && blocks !== null && blocks < sms) {
    const text = `${blocks} block${blocks === 1 ? '' : 's'} for ${sms} SMs`;
    return { ...base, limiter: 'grid', text, saving: moreWarps(blocks / sms, 1, busiest, nearPeak) };
  }
  // A last wave that fills few SMs lowers every mean: while its blocks run, such a kernel is busier than that.
  const whole = waves.value === null || waves.value <= 0 ? 1 : Math.ceil(waves.value) / waves.value;
  if (busiest * whole >= latencyPercent) return null;
  // Kernels of tensor cores cover latency by copies that run ahead, not by warps: one block an SM is their design. Where the
  // counter was not collected nothing tells that it is none of them.
  if ((kernel.tensor_pipe.value ?? tensorPercent) >= tensorPercent) return null;
  const { theoretical, achieved, limited_by: by } = occupancy;
  if (theoretical.value === null || theoretical.value >= fewWarps || by.length === 0) return null;
  // Lifted, it is the next resource that decides.
  const [tightest = 1, next = 2 * tightest] = [...new Set(occupancy.limits.map(({ blocks: one }) => one))];
  const target = Math.min(100, (theoretical.value * next) / tightest);
  const text = `${formatQuantity(theoretical.value, '%')} of an SM's warps fit${achieved.value === null ? '' : ` (${formatQuantity(achieved.value, '%')} reached)`}, by ${by.join(' and ')}`;
  const peak = isScattered(kernel) ? scatteredPeak : nearPeak;
  return {
    ...base,
    limiter: by[0] as Limiter,
    text,
    saving: moreWarps(theoretical.value / 100, target / 100, busiest, peak),
  };
}

/** Nothing it reads is used again, in no cache: single sectors from anywhere. */
const isScattered = ({ l1_hit_rate: l1, l2_hit_rate: l2 }: KernelCounters): boolean =>
  l1.value !== null && l2.value !== null && l1.value <= 25 && l2.value <= 25;

function blocksOf(grid: string | null): number | null {
  const sizes = (grid ?? '').split(',').map(Number);
  return sizes.length > 0 && sizes.every((size) => size >= 1) ? sizes.reduce((x, y) => x * y, 1) : null;
}

/**
 * Little's law: a kernel that waits for latencies is as fast as it has warps in flight, until a unit nears its peak.
 * Low: half of what the law gives.
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
    high: Math.max(expected, 1 - Math.max(now / then, busiestPercent / nearPeak)),
  };
}

async function finding(
  context: FindingContext,
  saving: StageSaving,
  limiter: Limiter,
  own: readonly Limited[],
): Promise<FoundDraft> {
  const worst = own
    .filter((kernel) => saving.kernels.includes(kernel))
    .toSorted(
      (a, b) =>
        b.duration_ns * b.launches * b.saving.expected - a.duration_ns * a.launches * a.saving.expected,
    )[0]!;
  const names = [...new Set(saving.kernels.map(({ name }) => name))];
  const { evidence } = await context.evidence<{ kernel_name: string; metric: string; value: number }>(
    `SELECT kernel_name, metric, avg(value) AS value, count(*) AS launches FROM counters
     WHERE kernel_name IN (${names.map((name) => `'${name.replaceAll("'", "''")}'`).join(', ')})
       AND regexp_matches(metric, '^(gpu__time_duration.sum|sm__warps_active.avg.pct_of_peak_sustained_active|sm__maximum_warps_per_active_cycle_pct|launch__(grid_size|registers_per_thread|waves_per_multiprocessor|occupancy_limit_.*)|(sm__throughput|gpu__compute_memory_throughput).avg.pct_of_peak_sustained_elapsed)$')
     GROUP BY ALL ORDER BY kernel_name, metric`,
    () =>
      `${shortName(worst.name)}: ${worst.text}, ${Math.round(worst.duration_ns / 1000)} µs a launch under ncu.`,
  );
  const share = saving.kernel_ms / saving.whole_ms;
  return {
    stage: saving.stage,
    title:
      limiter === 'grid'
        ? `Low occupancy: ${shortName(worst.name)} has ${worst.text} and waits for latencies`
        : `Low occupancy: of ${shortName(worst.name)} ${worst.text}, and it waits for latencies`,
    at_stake_ms: saving.expected_ms,
    share: saving.expected_ms / saving.whole_ms,
    cause: `${saving.kernels.length === 1 ? 'One kernel' : `${saving.kernels.length} kernels`} (${formatPercent(share)} of ${placeWords(saving)}) ${saving.kernels.length === 1 ? 'keeps' : 'keep'} neither compute nor memory busy: too few warps are in flight to cover the latency of each access, because of ${limiter === 'grid' ? 'a grid smaller than the GPU' : limiter}.`,
    change: { kind: 'code', ...(ofLibrary(worst.name, limiter) ?? changes[limiter]) },
    gain: {
      expected_ms: saving.expected_ms,
      low_ms: saving.low_ms,
      high_ms: saving.high_ms,
      after_ms: saving.whole_ms - saving.expected_ms,
      assumption:
        limiter === 'grid'
          ? "Little's law: speed grows with the blocks in flight until every SM has one, or a unit reaches 80 % of its peak."
          : "Little's law: speed grows with the warps in flight, until the next resource limits them or a unit nears its peak (80 %, DRAM read in single sectors 50 %).",
      what_if: null,
    },
    confidence: 'medium',
    bars: saving.stage === null ? [] : classBars(context, saving.stage, [...saving.classes]),
    evidence: [evidence],
    check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
  };
}
