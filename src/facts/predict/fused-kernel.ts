import type { Architecture, GroupedAttention, Layer } from '../../llm/architecture.js';
import type { NecessaryOp } from '../../llm/necessary-op.js';
import type { StageShape } from '../../llm/shape.js';
import type { Storage } from '../../llm/storage.js';
import { bytesOf } from '../../llm/work-totals.js';
import type { OpClass } from '../../model/classes.js';
import type { Fusion, Launch } from '../../model/documents/predict.js';

/** A kernel of the table (parameters as in KernelCase.params), or one that only moves bytes. */
export interface StageKernel {
  /** Operation it belongs to. */
  op: string;
  class: OpClass;
  /** gemm, attention, …; elementwise: contiguous in and out; strided: broadcast or transposed, element by element. */
  kernel: 'gemm' | 'attention' | 'swiglu' | 'rope' | 'embedding' | 'sampling' | 'elementwise' | 'strided';
  dtype: string;
  params: Record<string, number>;
  /** Necessary FLOPs and bytes of one kernel. */
  flops: number;
  bytes: number;
  /** Launches per kernel. */
  launches: number;
  /** Number of runs in the stage. */
  count: number;
}

export interface StageModel {
  architecture: Architecture;
  storage: Storage;
}

/** How a stage runs. */
export interface StagePlan {
  shape: StageShape;
  fusion: Fusion;
  launch: Launch;
  /** Tokens reserved in a static cache, which graphs need; null for a growing cache. */
  reserved: number | null;
}

/** One kernel per operation. */
export function fusedKernel(op: NecessaryOp, layer: Layer, model: StageModel, plan: StagePlan): StageKernel {
  const { shape } = plan;
  const tokens = shape.batchSize * shape.newTokens;
  const common = {
    op: op.name,
    class: op.class,
    dtype: op.dtype,
    flops: op.flops,
    bytes: bytesOf(op),
    launches: 1,
    count: 1,
  };
  const attention = op.name.startsWith('cross_') ? layer.cross : layer.attention;
  const grouped = attention?.kind === 'grouped' ? attention : null;
  if (op.gemm) {
    const { m, n, k, batch } = op.gemm;
    // Experts and absorbed projections: one grouped GEMM, which `batch` distinguishes from a single one.
    return { ...common, kernel: 'gemm', params: batch === 1 ? { m, n, k } : { m, n, k, batch } };
  }
  if (op.class === 'attention') {
    return { ...common, kernel: 'attention', params: grouped ? attentionParams(grouped, shape) : {} };
  }
  if (op.class === 'embedding') {
    const { vocabSize: vocab, embeddingDim: hidden } = model.architecture;
    return { ...common, kernel: 'embedding', params: { tokens, vocab, hidden } };
  }
  if (op.class === 'sampling') {
    const { vocabSize: vocab } = model.architecture;
    return { ...common, kernel: 'sampling', params: { batch: shape.batchSize, vocab } };
  }
  // swiglu and rope of the table are several kernels, and its rmsnorm is two with an addition. Fused ones are timed by
  // their bytes.
  return { ...common, kernel: 'elementwise', params: {} };
}

/** Elementwise kernels that each move these bytes. */
export function elementwiseKernels(
  op: Pick<NecessaryOp, 'name' | 'class' | 'dtype'>,
  bytes: readonly number[],
  kernel: 'elementwise' | 'strided' = 'elementwise',
  overrides: { name?: string; class?: OpClass } = {},
): StageKernel[] {
  return bytes.map((value) => ({
    op: overrides.name ?? op.name,
    class: overrides.class ?? op.class,
    kernel,
    dtype: op.dtype,
    params: {},
    flops: 0,
    bytes: value,
    launches: 1,
    count: 1,
  }));
}

/**
 * A windowed layer reads its window; a table's case has that context, including the new tokens. An encoder's layer and a cross-attention
 * read the source.
 */
function attentionParams(
  { headCount: heads, kvHeadCount: kv_heads, headDim: head_dim, window, keys }: GroupedAttention,
  { batchSize: batch, newTokens, contextTokens, source }: StageShape,
): Record<string, number> {
  const new_tokens = keys === 'all' && source ? source.tokens : newTokens;
  const readsSource = source && (keys === 'all' || keys === 'source');
  const contextLength = readsSource ? source.tokens : contextTokens + new_tokens;
  return {
    batch,
    heads,
    kv_heads,
    head_dim,
    new_tokens,
    context: window === null ? contextLength : Math.min(contextLength, window),
  };
}
