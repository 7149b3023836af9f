import { checkGrid } from '../model/grid.js';
import type { KernelCase, KernelName } from '../model/kernels.js';
import { kernelCase } from './kernel-work.js';

/** The sizes to sweep: each combination is a case of every kernel with those sizes. */
interface KernelSweep {
  batchSizes: readonly number[];
  seqLens: readonly number[];
  hiddenSizes: readonly number[];
  dtypes: readonly string[];
  /** SDPA backends; null is PyTorch's own choice. */
  backends: readonly (string | null)[];
}

interface SizeDefaults {
  batchSize: number;
  seqLen: number;
  hiddenSize: number;
  vocab: number;
}

/** On a GPU sizes of an 8 B model's layers, on a CPU sizes that take milliseconds. */
export const usualSizes: Record<'gpu' | 'cpu', SizeDefaults> = {
  gpu: { batchSize: 8, seqLen: 512, hiddenSize: 4096, vocab: 128_256 },
  cpu: { batchSize: 1, seqLen: 128, hiddenSize: 512, vocab: 32_000 },
};

interface Sizes {
  batch: number;
  seq: number;
  hidden: number;
  vocab: number;
}

/** Heads of 128 dimensions (64 in small models), four query heads per key/value head, like Llama 3. */
function headsOf(hidden: number): { heads: number; kv_heads: number; head_dim: number } {
  const head_dim =
    hidden >= 1024 && hidden % 128 === 0 ? 128 : hidden % 64 === 0 ? 64 : Math.max(2, hidden - (hidden % 2));
  const heads = Math.max(1, Math.floor(hidden / head_dim));
  return { heads, kv_heads: heads % 4 === 0 ? heads / 4 : heads, head_dim };
}

/** 3.5 × hidden like Llama 3 (4096 → 14336), in multiples of 64. */
const intermediateOf = (hidden: number): number => Math.max(64, Math.round((3.5 * hidden) / 64) * 64);

const paramsOf: Record<KernelName, (sizes: Sizes) => Record<string, number>[]> = {
  gemm: ({ batch, seq, hidden }) => [{ m: batch * seq, n: hidden, k: hidden }],
  linear: ({ batch, seq, hidden }) => [
    { tokens: batch * seq, in_features: hidden, out_features: intermediateOf(hidden), bias: 1 },
  ],
  // conv2_x of ResNet-50 (He et al. 2015, table 1): 64 channels, more only for larger hidden sizes.
  conv2d: ({ batch, hidden }) => {
    const channels = Math.max(64, Math.round(hidden / 64));
    return [{ batch, channels, out_channels: channels, height: 56, width: 56, kernel: 3 }];
  },
  // A quarter of the hidden size, because an LSTM's GEMMs run step after step.
  lstm: ({ batch, seq, hidden }) => {
    const width = Math.max(16, Math.round(hidden / 4));
    return [{ batch, seq, input: width, hidden: width, layers: 1 }];
  },
  'layernorm-gelu': ({ batch, seq, hidden }) => [{ tokens: batch * seq, hidden }],
  attention: ({ batch, seq, hidden }) => [
    { batch, ...headsOf(hidden), new_tokens: seq, context: seq },
    { batch, ...headsOf(hidden), new_tokens: 1, context: seq },
  ],
  softmax: ({ batch, seq, hidden }) => [{ rows: batch * seq, columns: hidden }],
  rmsnorm: ({ batch, seq, hidden }) => [{ tokens: batch * seq, hidden, residual: 1 }],
  swiglu: ({ batch, seq, hidden }) => [{ tokens: batch * seq, intermediate: intermediateOf(hidden) }],
  rope: ({ batch, seq, hidden }) => [{ tokens: batch * seq, ...headsOf(hidden) }],
  embedding: ({ batch, seq, hidden, vocab }) => [{ tokens: batch * seq, vocab, hidden }],
  sampling: ({ batch, vocab }) => [{ batch, vocab }],
};

const is8Bit = (dtype: string): boolean => dtype === 'float8' || dtype === 'int8';

/** Kernels with 8-bit forms. */
const kernelsIn8Bit = new Set<KernelName>(['gemm', 'linear']);

/** Whether a kernel has a form in the dtype. */
function supportsDType(kernel: KernelName, dtype: string): boolean {
  if (dtype === 'int4' || dtype === 'nvfp4' || dtype === 'mxfp4') return false;
  if (is8Bit(dtype)) return kernelsIn8Bit.has(kernel);
  if (dtype === 'tfloat32') return ['gemm', 'linear', 'conv2d', 'lstm'].includes(kernel);
  return true;
}

/** Position of a case in a sweep; sizes that its kernel does not have are null. */
export interface SweepPoint {
  case: string;
  /** Series compared over the sweep: attention prefill, gemm, … */
  series: string;
  batch_size: number | null;
  seq_len: number | null;
  hidden_size: number | null;
  dtype: string;
  backend: string | null;
}

interface SweptCases {
  cases: KernelCase[];
  points: SweepPoint[];
}

/** Sizes that a kernel does not depend on. */
const ignoredSizes: Partial<Record<KernelName, readonly ('seq_len' | 'hidden_size')[]>> = {
  conv2d: ['seq_len'],
  sampling: ['seq_len', 'hidden_size'],
};

/**
 * Cases of the kernels over every combination of the sweep, each once: sizes that a kernel does not have do not
 * multiply it. Combinations of kernel and dtype that do not exist are left out.
 * @throws E_USAGE for more combinations than one command measures
 */
export function sweepCases(names: readonly KernelName[], sweep: KernelSweep, vocab: number): SweptCases {
  checkGrid(
    {
      kernels: names.length,
      '--dtype': sweep.dtypes.length,
      '--hidden-size': sweep.hiddenSizes.length,
      '--seq-len': sweep.seqLens.length,
      '--batch-size': sweep.batchSizes.length,
      '--backend': sweep.backends.length,
    },
    'cases',
  );
  const cases = new Map<string, KernelCase>();
  const points = new Map<string, SweepPoint>();
  for (const combination of combinations(names, sweep)) {
    const ignored = ignoredSizes[combination.name] ?? [];
    for (const params of paramsOf[combination.name]({
      batch: combination.batch,
      seq: combination.seq,
      hidden: combination.hidden,
      vocab,
    })) {
      // torch._scaled_mm and torch._int_mm have no bias.
      const caseParams =
        combination.name === 'linear' && is8Bit(combination.dtype) ? { ...params, bias: 0 } : params;
      const sweptCase = kernelCase(combination.name, combination.dtype, caseParams, combination.backend);
      cases.set(sweptCase.case, sweptCase);
      const phase =
        combination.name === 'attention' ? (params['new_tokens'] === 1 ? ' decode' : ' prefill') : '';
      const point: SweepPoint = {
        case: sweptCase.case,
        series: `${combination.name}${phase}`,
        batch_size: combination.batch,
        seq_len: ignored.includes('seq_len') ? null : combination.seq,
        hidden_size: ignored.includes('hidden_size') ? null : combination.hidden,
        dtype: combination.dtype,
        backend: combination.backend,
      };
      // Batch 2 of 4 tokens and batch 1 of 8 are one case for most kernels, but two points.
      points.set(JSON.stringify(point), point);
    }
  }
  return { cases: [...cases.values()], points: [...points.values()] };
}

function combinations(names: readonly KernelName[], sweep: KernelSweep) {
  const { dtypes, hiddenSizes, seqLens, batchSizes } = sweep;
  return names.flatMap((name) =>
    dtypes
      .filter((dtype) => supportsDType(name, dtype))
      .flatMap((dtype) => hiddenSizes.map((hidden) => ({ name, dtype, hidden })))
      .flatMap((params) => seqLens.map((seq) => ({ ...params, seq })))
      .flatMap((params) => batchSizes.map((batch) => ({ ...params, batch })))
      .flatMap((params) =>
        (name === 'attention' ? sweep.backends : [null]).map((backend) => ({ ...params, backend })),
      ),
  );
}
