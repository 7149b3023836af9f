import { rooflineTime } from '../../../llm/roofline-time.js';
import type { StageShape } from '../../../llm/shape.js';
import { necessaryOps, type WorkloadModel } from '../../../facts/model-work.js';
import type { GpuRoofs } from '../../../facts/roofs.js';
import { maxRooflineShare } from '../../../facts/waterfall/stage-need.js';
import { neededPeaks } from '../../../facts/utilization/roofs.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { waitingRequests, type WaitingRequests } from '../waiting-requests.js';
import { ms, part } from '../words.js';
import { barHeads } from '../../../model/bars.js';
import type { PeakDType } from '../../../hardware/gpu-sheet.js';
import { plural } from '../../../vocabulary/format.js';

/** Share of the measured time: if the roofline is a smaller part, other changes come first. */
const minRoofShare = 0.4;
/** Share of the roofline per token that a larger batch must save for this one to count as small. */
const minSavingShare = 0.5;
const maxBatch = 1024;
/** A batch smaller than the balance point by this factor is small. */
const smallBatchFactor = 8;

interface Decode {
  shape: StageShape;
  /** max(ΣF/P, ΣB/BW), ms. */
  roof: number;
  bound: 'compute' | 'memory';
}

/** ms per token of a step, and of a larger one with the same absolute distance from its roofline. */
interface Larger {
  now: Decode;
  large: Decode;
  perToken: number;
  perTokenAfter: number;
  stepAfter: number;
}

/** Decode reads all weights for few sequences: a larger batch takes little longer. */
export const smallBatchMemoryBound = stageRule(
  {
    id: 'small_batch_memory_bound',
    title: 'Memory-bound decode at a small batch',
    docs: {
      finds:
        'Decode reads all weights for few sequences, possibly because max_num_seqs of vLLM is reached while requests wait; a larger batch takes little longer.',
      needs:
        "a GPU timeline: nsys, or PyTorch's profiler, the model's config.json, roofs of the GPU; for waiting requests `run` around vLLM",
      gain: 'Per token: the roofline at this batch compared with the batch at which compute becomes the limit, or with that of the running and waiting requests.',
      change: 'Decode more sequences per step, quantize weights, or use speculative decoding.',
      withheld:
        'the stage is compute-bound; where no requests wait, its roofline is under 40 % of its time, or the batch is within 8x of that batch',
    },
    references: [
      { title: 'Transformer Inference Arithmetic', url: 'https://kipp.ly/transformer-inference-arithmetic/' },
      {
        title: 'vLLM: optimization and tuning',
        url: 'https://docs.vllm.ai/en/latest/configuration/optimization.html',
      },
      {
        title: 'Fast Inference from Transformers via Speculative Decoding',
        url: 'https://arxiv.org/abs/2211.17192',
      },
    ],
  },
  async (context, stage) => {
    if (stage.kind !== 'decode') return 'judged for decode only';
    const { model, roofs } = context;
    const shape = await stageShape(context, stage.kind);
    if (!('architecture' in model) || !roofs) return "the model's arithmetic is not known";
    if (!shape) return 'batch and context are not known';
    const now = decodeAt(model, roofs, shape);
    if (!now) return 'the peaks of this GPU are not known';
    if (now.bound !== 'memory') return `compute-bound at batch ${shape.batchSize}`;
    const queue = await waitingRequests(context);
    if (queue && queue.running === shape.batchSize) {
      const after = { ...shape, batchSize: queue.running + queue.waiting };
      const larger = largerStep(stage.wall_ms, now, decodeAt(model, roofs, after)!);
      const saved = larger.perToken - larger.perTokenAfter;
      return saved < minShare * larger.perToken
        ? `${plural(queue.waiting, 'request')} wait, but with them a token would take ${part(larger.perTokenAfter, larger.perToken)} of its time`
        : limitFinding(context, stage, larger, queue);
    }
    if (now.roof > maxRooflineShare * stage.wall_ms)
      return `its roofline of ${ms(now.roof)} is longer than measured: this model or these sizes did not run`;
    if (now.roof < minRoofShare * stage.wall_ms) {
      return `memory-bound at batch ${shape.batchSize}, but its roofline is only ${part(now.roof, stage.wall_ms)} of the time`;
    }
    const balanceBatch = findBalanceBatch(model, roofs, shape);
    const large = decodeAt(model, roofs, { ...shape, batchSize: balanceBatch })!;
    const share = 1 - large.roof / balanceBatch / (now.roof / shape.batchSize);
    if (shape.batchSize * smallBatchFactor > balanceBatch)
      return large.bound === 'compute'
        ? `batch ${shape.batchSize} is not small: decode becomes compute-bound at ${balanceBatch}`
        : `batch ${shape.batchSize} is not small: ${balanceBatch} is the largest that is tried`;
    if (share < minSavingShare) {
      return `batch ${shape.batchSize}: batch ${balanceBatch} would save only ${part(share, 1)} of the roofline per token`;
    }
    return batchFinding(context, stage, largerStep(stage.wall_ms, now, large));
  },
);

function largerStep(wall: number, now: Decode, large: Decode): Larger {
  const stepAfter = wall - now.roof + large.roof;
  return {
    now,
    large,
    perToken: wall / now.shape.batchSize,
    perTokenAfter: stepAfter / large.shape.batchSize,
    stepAfter,
  };
}

function decodeAt(model: WorkloadModel, roofs: GpuRoofs, shape: StageShape): Decode | null {
  const ops = necessaryOps(model, shape);
  const types = [...new Set(ops.filter(({ flops }) => flops > 0).map(({ dtype }) => dtype as PeakDType))];
  const peaks = neededPeaks(types, (dtype) => roofs.roofFlops(dtype));
  if ('reason' in peaks) return null;
  const time = rooflineTime(ops, peaks, roofs.roofBandwidth.value);
  return 'reason' in time ? null : { shape, roof: time.roofline_s * 1e3, bound: time.bound };
}

/** The batch at which decode becomes compute-bound; the largest tried if the cache's bytes prevent that. */
function findBalanceBatch(model: WorkloadModel, roofs: GpuRoofs, shape: StageShape): number {
  let batch = shape.batchSize;
  while (batch < maxBatch) {
    batch = Math.min(maxBatch, batch * 2);
    if (decodeAt(model, roofs, { ...shape, batchSize: batch })?.bound !== 'memory') break;
  }
  let low = batch / 2;
  let high = batch;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (decodeAt(model, roofs, { ...shape, batchSize: middle })?.bound === 'memory') low = middle;
    else high = middle;
  }
  return Math.floor(high);
}

async function batchFinding(context: FindingContext, stage: StageFacts, larger: Larger): Promise<FoundDraft> {
  const { now, large } = larger;
  const { kind, wall_ms: wall, instances } = stage;
  const { batchSize: batch, contextTokens } = now.shape;
  const balanceBatch = large.shape.batchSize;
  const { evidence } = await context.evidence<{ class: string; ms: number }>(
    `SELECT coalesce(class, 'other') AS class, round(count(*) / ${instances}, 2) AS kernels, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' GROUP BY 1 ORDER BY ms DESC`,
    (rows) =>
      `${rows[0]?.class ?? 'gemm'} kernels take ${ms(rows[0]?.ms ?? Number.NaN)} of ${ms(wall)} per step; the bytes alone take ${ms(now.roof)}`,
  );
  const bounded = large.bound === 'compute';
  return {
    stage: kind,
    title: `Memory-bound decode: each step reads all weights for ${plural(batch, 'sequence')}`,
    cause: `At batch ${batch} and ${plural(contextTokens, 'token')} of context a step moves the weights once for every ${plural(batch, 'token')}: ${ms(now.roof)} of ${ms(wall)} at this GPU's bandwidth. Decode is memory-bound up to batch ${balanceBatch}${bounded ? ', where compute takes as long' : ' and beyond, because the KV cache grows with the batch'}.`,
    change: {
      kind: 'config',
      text: `Decode more sequences in one step (up to ${balanceBatch}), keep weights in 8 or 4 bits, or verify several tokens per step with speculative decoding.`,
      example: `--max-num-seqs ${balanceBatch}; --quantization fp8; --speculative-config '{"method": "ngram", "num_speculative_tokens": 4}'`,
    },
    ...gainPerToken(wall, larger),
    confidence: 'medium',
    bars: barsOf(context, kind, ['roofline', 'serial', 'inefficiency', 'nonessential', 'launch_latency']),
    evidence: [evidence],
    check: checkAgain,
  };
}

/** A limit of the engine keeps requests waiting that could be decoded in the same steps. */
function limitFinding(
  context: FindingContext,
  stage: StageFacts,
  larger: Larger,
  queue: WaitingRequests,
): FoundDraft {
  const { kind, wall_ms: wall } = stage;
  const { running, waiting, evidence } = queue;
  return {
    stage: kind,
    title: `Few sequences per step: ${plural(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'} while every decode step runs ${running}, the limit of max_num_seqs`,
    cause: `The engine admits ${plural(running, 'request')} at once. A step reads all weights and costs the host as much for ${running} as for all ${running + waiting}.`,
    change: {
      kind: 'config',
      text: 'Raise --max-num-seqs, so that more requests run at once, as far as the KV cache has room for them.',
      example: `--max-num-seqs ${running + waiting}`,
    },
    ...gainPerToken(wall, larger),
    queued: true,
    confidence: 'high',
    // Its sequences share all time of a step.
    bars: barsOf(context, kind, barHeads),
    evidence: [evidence],
    check: checkAgain,
  };
}

/** Assumes the larger batch has the same absolute distance from its roofline. */
function gainPerToken(wall: number, larger: Larger): Pick<FoundDraft, 'at_stake_ms' | 'gain'> {
  const { now, large, perToken, perTokenAfter, stepAfter } = larger;
  const [batch, after] = [now.shape.batchSize, large.shape.batchSize];
  const gain = perToken - perTokenAfter;
  return {
    at_stake_ms: gain * batch,
    gain: {
      per: 'token',
      expected_ms: gain,
      low_ms: 0.7 * gain,
      high_ms: Math.min(perToken, gain * 1.02),
      after_ms: perTokenAfter,
      assumption: `A token takes ${ms(perToken)} of a step now (${ms(wall)} per step for ${batch}) and ${ms(perTokenAfter)} at batch ${after}, where a step takes ${ms(stepAfter)}: its roofline plus the time that this step takes above its own roofline. Steps do not become shorter, and a single sequence does not become faster.`,
      what_if: `batch-size=${after}`,
    },
  };
}
