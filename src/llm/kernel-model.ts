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
  /** FLOP and bytes of one run, from stageWork: FLOP of matrix products only, bytes of the fused form. */
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
      shapes(batchSize, context).map((shape) => stepOf(a, storage, { ...shape, backend }, cases)),
    ),
  );
  return { steps, cases: [...cases.values()] };
}

/** A stage with PyTorch's attention backend to measure it with; null is PyTorch's own choice. */
type MeasuredShape = StageShape & { backend: string | null };

function shapes(batchSize: number, context: number): StageShape[] {
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
    const found = measuredBy(a, op, shape);
    if (found.case !== null) cases.set(found.case.case, found.case);
    const measurement = { case: found.case?.case ?? null, reason: found.reason };
    // Layers differ in windows and experts, so one name may be several operations.
    const key = JSON.stringify([op.name, measurement, found.case === null ? [op.flops, bytesOf(op)] : null]);
    const known = ops.get(key);
    if (known) known.count++;
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

type Measured = { case: KernelCase; reason: null } | { case: null; reason: string };

const without = (reason: string): Measured => ({ case: null, reason });

function measuredBy(a: Architecture, op: NecessaryOp, shape: MeasuredShape): Measured {
  const as = (kernel: KernelName, params: Record<string, number>): Measured => ({
    case: kernelCase(kernel, op.dtype, params, kernel === 'attention' ? shape.backend : null),
    reason: null,
  });
  const tokens = shape.batchSize * shape.newTokens;
  const layer = op.layer === null ? null : (a.layers[op.layer] ?? null);
  if (op.gemm) return product(op, as);
  switch (op.class) {
    case 'attention':
      return attention(layer, shape, as);
    case 'norm':
      return norm(a, op, layer, shape, as);
    case 'embedding':
      return as('embedding', { tokens, vocab: a.vocabSize, hidden: a.embeddingDim });
    case 'sampling':
      return as('sampling', { batch: shape.batchSize, vocab: a.vocabSize });
    default:
      return elementwise(op, layer, tokens, as);
  }
}

type As = (kernel: KernelName, params: Record<string, number>) => Measured;

function product({ gemm, bytes, dtype }: NecessaryOp, as: As): Measured {
  const { m, n, k, batch } = gemm!;
  if (batch !== 1) return without(`${formatCount(batch)} products as one: no kernel of the suite is grouped`);
  // Half a percent of tolerance, for scales of 8-bit formats and for biases.
  if (bytes.weights < 0.99 * n * k * bytesPerElement[dtype])
    return without(
      `weights of fewer bits than the ${dtype} they are multiplied in: no kernel of the suite unpacks them`,
    );
  return as('gemm', { m, n, k });
}

function attention(
  layer: Layer | null,
  { batchSize, newTokens, contextTokens }: StageShape,
  as: As,
): Measured {
  const attention = layer?.attention;
  if (!attention || attention.kind !== 'grouped')
    return without(
      attention?.kind === 'recurrent'
        ? `${attention.form}: no kernel of the suite has its form`
        : 'latent attention (MLA): no kernel of the suite has its form',
    );
  if (attention.chunked) return without('attention in chunks: no kernel of the suite has its form');
  const all = newTokens + contextTokens;
  const context = attention.window === null ? all : Math.min(all, attention.window);
  if (context < newTokens)
    return without(
      `a window of ${attention.window} inside ${newTokens} new tokens: the suite measures whole causal attention`,
    );
  return as('attention', {
    batch: batchSize,
    heads: attention.headCount,
    kv_heads: attention.kvHeadCount,
    head_dim: attention.headDim,
    new_tokens: newTokens,
    context,
  });
}

function norm(a: Architecture, op: NecessaryOp, layer: Layer | null, shape: StageShape, as: As): Measured {
  const element = bytesPerElement[op.dtype];
  const { activations_in: read, activations_out: written } = op.bytes;
  const tokens = shape.batchSize * (op.layer === null ? 1 : shape.newTokens);
  if (op.name === 'qk_norm') {
    const attention = layer?.attention;
    if (!attention || attention.kind !== 'grouped' || attention.qkNorm !== 'rmsnorm' || attention.qkNormWide)
      return without(
        attention?.kind === 'grouped' && attention.qkNormWide
          ? 'a norm over all heads of two widths at once'
          : 'LayerNorm alone: the suite has it together with GELU',
      );
    return as('rmsnorm', {
      tokens: tokens * (attention.headCount + attention.kvHeadCount),
      hidden: attention.headDim,
      residual: 0,
    });
  }
  if (op.name === 'q_a_norm' || op.name === 'kv_a_norm')
    return as('rmsnorm', { tokens, hidden: read / element / tokens, residual: 0 });
  if (a.norm !== 'rmsnorm') return without('LayerNorm alone: the suite has it together with GELU');
  const added = read > tokens * a.hiddenSize * element || written > tokens * a.hiddenSize * element;
  return as('rmsnorm', { tokens, hidden: a.hiddenSize, residual: added ? 1 : 0 });
}

function elementwise(op: NecessaryOp, layer: Layer | null, tokens: number, as: As): Measured {
  const { attention, mlp } = layer ?? {};
  if (op.name === 'rotary' && attention && attention.kind !== 'recurrent')
    return attention.kind === 'grouped'
      ? as('rope', {
          tokens,
          heads: attention.headCount,
          kv_heads: attention.kvHeadCount,
          head_dim: attention.rotaryDim,
        })
      : as('rope', { tokens, heads: attention.headCount, kv_heads: 1, head_dim: attention.ropeDim });
  if (op.name === 'swiglu' && mlp?.kind === 'dense')
    return as('swiglu', { tokens, intermediate: mlp.intermediateSize });
  if (op.name === 'experts_swiglu' && mlp?.kind === 'moe')
    return as('swiglu', { tokens: tokens * mlp.expertsPerToken, intermediate: mlp.intermediateSize });
  if (op.name === 'shared_swiglu' && mlp?.kind === 'moe')
    return as('swiglu', { tokens, intermediate: mlp.sharedIntermediateSize });
  return without('no kernel of the suite does this');
}
