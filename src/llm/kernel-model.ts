import { bytesPerElement } from '../model/dtype.js';
import { checkGrid } from '../model/grid.js';
import type { KernelCase, KernelName } from '../model/kernels.js';
import type { Architecture, Layer } from './architecture.js';
import { kernelCase } from './kernel-work.js';
import type { NecessaryOp } from './necessary-op.js';
import type { StageShape } from './shape.js';
import type { Storage } from './storage.js';
import { samplingOp, stageWork } from './work.js';
import { bytesOf } from './work-totals.js';
import { formatCount } from '../vocabulary/format.js';

/** An operation of a step, with the case that measures it or the reason why none does. */
interface StepOp {
  /** Name in stageWork: qkv_proj, attention, lm_head, … */
  name: string;
  /** Number of runs per step. */
  count: number;
  case: string | null;
  reason: string | null;
  /** FLOP and bytes of one run, from stageWork: FLOP of matrix multiplications only, bytes of the fused form. */
  flops: number;
  bytes: number;
}

/** A prefill, or one decode step, of the model. */
export interface ModelStep {
  phase: StageShape['phase'];
  batch_size: number;
  new_tokens: number;
  /** Tokens in the cache before the step. */
  context_tokens: number;
  ops: StepOp[];
}

interface ModelCases {
  steps: ModelStep[];
  /** Each case once, in order of first use. */
  cases: KernelCase[];
}

/**
 * The operations of prefill (a prompt of each context length) and decode (one token after it), from stageWork, each
 * measured once however often it runs. Operations without a kernel in the suite give the reason.
 * @throws E_LENGTHS for an impossible size, E_USAGE for more shapes than one command measures
 */
export function modelCases(
  a: Architecture,
  storage: Storage,
  {
    batchSizes,
    contextLens,
    backend = null,
  }: { batchSizes: readonly number[]; contextLens: readonly number[]; backend?: string | null },
): ModelCases {
  checkGrid({ '--context-len': contextLens.length, '--batch-size': batchSizes.length }, 'shapes', 1000);
  const cases = new Map<string, KernelCase>();
  const steps = contextLens.flatMap((context) =>
    batchSizes.flatMap((batchSize) =>
      shapesOf(batchSize, context).map((shape) => stepOf(a, storage, { ...shape, backend }, cases)),
    ),
  );
  return { steps, cases: [...cases.values()] };
}

/** A stage with PyTorch's attention backend to measure it with; null is PyTorch's own choice. */
type MeasuredShape = StageShape & { backend: string | null };

function shapesOf(batchSize: number, context: number): StageShape[] {
  return [
    { phase: 'prefill', batchSize, newTokens: context, contextTokens: 0 },
    { phase: 'decode', batchSize, newTokens: 1, contextTokens: context },
  ];
}

function stepOf(
  a: Architecture,
  storage: Storage,
  shape: MeasuredShape,
  cases: Map<string, KernelCase>,
): ModelStep {
  const ops = new Map<string, StepOp>();
  for (const op of [...stageWork(a, shape, storage), samplingOp(a, shape, storage)]) {
    const measured = caseOf(a, op, shape);
    if (measured.case !== null) cases.set(measured.case.case, measured.case);
    const measurement = { case: measured.case?.case ?? null, reason: measured.reason };
    // Layers differ in windows and experts, so one name may be several operations.
    const key = JSON.stringify([
      op.name,
      measurement,
      measured.case === null ? [op.flops, bytesOf(op)] : null,
    ]);
    const existing = ops.get(key);
    if (existing) existing.count++;
    else ops.set(key, { name: op.name, count: 1, ...measurement, flops: op.flops, bytes: bytesOf(op) });
  }
  return {
    phase: shape.phase,
    batch_size: shape.batchSize,
    new_tokens: shape.newTokens,
    context_tokens: shape.contextTokens,
    ops: [...ops.values()],
  };
}

type CaseOrReason = { case: KernelCase; reason: null } | { case: null; reason: string };

const notMeasured = (reason: string): CaseOrReason => ({ case: null, reason });

function caseOf(a: Architecture, op: NecessaryOp, shape: MeasuredShape): CaseOrReason {
  const measureAs = (kernel: KernelName, params: Record<string, number>): CaseOrReason => ({
    case: kernelCase(kernel, op.dtype, params, kernel === 'attention' ? shape.backend : null),
    reason: null,
  });
  const tokens = shape.batchSize * shape.newTokens;
  const layer = op.layer === null ? null : (a.layers[op.layer] ?? null);
  if (op.gemm) return gemmCase(op, measureAs);
  switch (op.class) {
    case 'attention':
      return attentionCase(layer, shape, measureAs);
    case 'norm':
      return normCase(a, op, layer, shape, measureAs);
    case 'embedding':
      return measureAs('embedding', { tokens, vocab: a.vocabSize, hidden: a.embeddingDim });
    case 'sampling':
      return measureAs('sampling', { batch: shape.batchSize, vocab: a.vocabSize });
    default:
      return elementwiseCase(op, layer, tokens, measureAs);
  }
}

type MeasureAs = (kernel: KernelName, params: Record<string, number>) => CaseOrReason;

function gemmCase({ gemm, bytes, dtype }: NecessaryOp, measureAs: MeasureAs): CaseOrReason {
  const { m, n, k, batch } = gemm!;
  if (batch !== 1) return notMeasured(`${formatCount(batch)} GEMMs in one: the suite has no grouped kernel`);
  // Half a percent of tolerance, for scales of 8-bit formats and for biases.
  if (bytes.weights < 0.99 * n * k * bytesPerElement[dtype])
    return notMeasured(
      `weights have fewer bits than ${dtype}, in which they are multiplied: the suite has no kernel that unpacks them`,
    );
  return measureAs('gemm', { m, n, k });
}

function attentionCase(
  layer: Layer | null,
  { batchSize, newTokens, contextTokens }: StageShape,
  measureAs: MeasureAs,
): CaseOrReason {
  const attention = layer?.attention;
  if (!attention || attention.kind !== 'grouped')
    return notMeasured(
      attention?.kind === 'recurrent'
        ? `${attention.form}: the suite has no such kernel`
        : 'latent attention (MLA): the suite has no such kernel',
    );
  if (attention.chunked) return notMeasured('attention in chunks: the suite has no such kernel');
  const all = newTokens + contextTokens;
  const context = attention.window === null ? all : Math.min(all, attention.window);
  if (context < newTokens)
    return notMeasured(
      `a window of ${attention.window} inside ${newTokens} new tokens: the suite measures full causal attention`,
    );
  return measureAs('attention', {
    batch: batchSize,
    heads: attention.headCount,
    kv_heads: attention.kvHeadCount,
    head_dim: attention.headDim,
    new_tokens: newTokens,
    context,
  });
}

function normCase(
  a: Architecture,
  op: NecessaryOp,
  layer: Layer | null,
  shape: StageShape,
  measureAs: MeasureAs,
): CaseOrReason {
  const element = bytesPerElement[op.dtype];
  const { activations_in: readBytes, activations_out: writtenBytes } = op.bytes;
  const tokens = shape.batchSize * (op.layer === null ? 1 : shape.newTokens);
  if (op.name === 'qk_norm') {
    const attention = layer?.attention;
    if (!attention || attention.kind !== 'grouped' || attention.qkNorm !== 'rmsnorm' || attention.qkNormWide)
      return notMeasured(
        attention?.kind === 'grouped' && attention.qkNormWide
          ? 'a norm over all heads of two widths at once'
          : 'LayerNorm alone: the suite has it together with GELU',
      );
    return measureAs('rmsnorm', {
      tokens: tokens * (attention.headCount + attention.kvHeadCount),
      hidden: attention.headDim,
      residual: 0,
    });
  }
  if (op.name === 'q_a_norm' || op.name === 'kv_a_norm')
    return measureAs('rmsnorm', { tokens, hidden: readBytes / element / tokens, residual: 0 });
  if (a.norm !== 'rmsnorm') return notMeasured('LayerNorm alone: the suite has it together with GELU');
  const hiddenBytes = tokens * a.hiddenSize * element;
  const hasResidual = readBytes > hiddenBytes || writtenBytes > hiddenBytes;
  return measureAs('rmsnorm', { tokens, hidden: a.hiddenSize, residual: hasResidual ? 1 : 0 });
}

function elementwiseCase(
  op: NecessaryOp,
  layer: Layer | null,
  tokens: number,
  measureAs: MeasureAs,
): CaseOrReason {
  const { attention, mlp } = layer ?? {};
  if (op.name === 'rotary' && attention && attention.kind !== 'recurrent')
    return attention.kind === 'grouped'
      ? measureAs('rope', {
          tokens,
          heads: attention.headCount,
          kv_heads: attention.kvHeadCount,
          head_dim: attention.rotaryDim,
        })
      : measureAs('rope', { tokens, heads: attention.headCount, kv_heads: 1, head_dim: attention.ropeDim });
  if (op.name === 'swiglu' && mlp?.kind === 'dense')
    return measureAs('swiglu', { tokens, intermediate: mlp.intermediateSize });
  if (op.name === 'experts_swiglu' && mlp?.kind === 'moe')
    return measureAs('swiglu', { tokens: tokens * mlp.expertsPerToken, intermediate: mlp.intermediateSize });
  if (op.name === 'shared_swiglu' && mlp?.kind === 'moe')
    return measureAs('swiglu', { tokens, intermediate: mlp.sharedIntermediateSize });
  return notMeasured('the suite has no such kernel');
}
