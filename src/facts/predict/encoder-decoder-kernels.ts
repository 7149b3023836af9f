import type { Architecture, GroupedAttention, Layer } from '../../llm/architecture.js';
import { type NecessaryOp, sum } from '../../llm/necessary-op.js';
import { bytesPerElement } from '../../model/dtype.js';
import { elementwiseKernels, type StageKernel, type StageModel, type StagePlan } from './fused-kernel.js';

/** Families that add an offset to positions, with a kernel. */
const withOffset = new Set(['BART', 'mBART']);
/** Kernels of the decoder that look for padding in the mask of its tokens, which is empty. */
const maskKernels = 5;
/** Kernels from positions to a bucket for each pair of tokens. */
const bucketKernels = { encoder: 21, decoder: 19 };
/** Tensors that the eight kernels of gelu_new and the product with the other half of a gated MLP move. */
const gatedGelu = [2, 2, 2, 3, 2, 2, 2, 3, 3];

const zeros = (n: number): number[] => Array.from({ length: n }, () => 0);

/**
 * Kernels of an operation of an encoder-decoder model, as transformers 5.17 launches them in eager mode, counted on an H200
 * (encoder-decoder-kernels.json): additions to those of a decoder-only model, or others.
 * @param kernels as in a decoder-only model
 */
export function encoderDecoderKernels(
  op: NecessaryOp,
  layer: Layer,
  model: StageModel,
  plan: StagePlan,
  kernels: StageKernel[],
): StageKernel[] {
  const { architecture: a, storage } = model;
  const element = bytesPerElement[storage.activations];
  const { batchSize, newTokens, source } = plan.shape;
  const isEncoder = source!.step === 'encode';
  const isWhisper = a.encoder!.convolutions !== null;
  const hidden = batchSize * newTokens * a.hiddenSize * element;
  const more = (name: string, bytes: readonly number[]) =>
    elementwiseKernels(op, bytes, 'elementwise', { name, class: 'elementwise' });
  const { activations_in: read, activations_out: written } = op.bytes;
  if (op.name === 'embedding') return embeddingKernels(kernels[0]!, a, isEncoder, hidden, more);
  if (op.name === 'encoder_positions')
    return [...more('positions', [0, (2 * hidden) / batchSize]), ...kernels];
  if (op.name.startsWith('conv'))
    return [...kernels, ...more('conv_bias', [2 * written]), ...more('activation', [2 * written])];
  if (op.name === 'lm_head' && !isWhisper) {
    if (!isT5(a)) return [...kernels, ...more('logits_bias', [3 * written])];
    return a.tiedEmbeddings ? [...more('scale', [2 * read]), ...kernels] : kernels;
  }
  if (op.name === 'swiglu')
    return [
      {
        ...kernels[0]!,
        kernel: 'elementwise',
        bytes: sum(gatedGelu, (n) => n) * written,
        launches: gatedGelu.length,
      },
    ];
  const grouped = (op.name === 'cross_attention' ? layer.cross : layer.attention) as GroupedAttention;
  // Whisper scales queries; its encoder transposes its input, and copies it for each norm and projection.
  const scale = isWhisper && op.class === 'attention' ? more('scale', [2 * hidden]) : [];
  if (isWhisper && isEncoder && (op.class === 'norm' || op.class === 'attention')) {
    // SDPA in float32 needs no copy of its output.
    const copies = op.class === 'norm' ? 1 : element === 4 ? 3 : 4;
    return [
      ...scale,
      ...more(
        'contiguous',
        Array.from({ length: copies }, () => 2 * hidden),
      ),
      ...kernels,
    ];
  }
  if (op.name === 'cross_attention') {
    // Keys, and values: half of the cache each, read and written; zeros for the missing bias once.
    const cached = source!.step === 'first' ? [op.bytes.kv_write, op.bytes.kv_write] : [];
    const bias = hasBias(layer.attention) ? [grouped.headCount * newTokens * source!.tokens * element] : [];
    return [
      ...scale,
      ...more('contiguous', isWhisper ? cached : []),
      ...elementwiseKernels({ ...op, name: 'kv_cache', class: 'copy' }, cached),
      ...more('position_bias', bias),
      ...kernels,
    ];
  }
  if (op.class !== 'attention' || !isT5(a)) return [...scale, ...kernels];
  return kernels.flatMap((kernel) =>
    kernel.kernel === 'attention'
      ? [
          ...(hasBias(grouped) ? biasKernels(kernel, grouped, isEncoder, more) : []),
          ...separateAttention(kernel, grouped, element, isEncoder, more),
        ]
      : [kernel],
  );
}

type MoreKernels = (name: string, bytes: readonly number[]) => StageKernel[];

const hasBias = (attention: Layer['attention']): boolean =>
  attention.kind === 'grouped' && attention.positionBias !== undefined;

const isT5 = ({ layers }: Architecture): boolean => layers.some(({ attention }) => hasBias(attention));

/** The lookup of tokens; all except T5 and Whisper scale it; positions, their lookup and addition. */
function embeddingKernels(
  lookup: StageKernel,
  a: Architecture,
  isEncoder: boolean,
  hidden: number,
  more: MoreKernels,
): StageKernel[] {
  if (isT5(a)) return [lookup];
  const isWhisper = a.encoder!.convolutions !== null;
  // Whisper makes no mask, and copies its positions for each sequence.
  const small = (isEncoder ? 1 : 2 + (isWhisper ? 1 : maskKernels)) + Number(withOffset.has(a.family));
  return [
    lookup,
    ...(isWhisper ? [] : more('scale', [2 * hidden])),
    ...more('positions', [...zeros(small), 2 * hidden, 3 * hidden]),
  ];
}

/** The bucket of each pair of query and key, and the lookup of its bias for every head. */
function biasKernels(
  { params }: StageKernel,
  { headCount }: GroupedAttention,
  isEncoder: boolean,
  more: MoreKernels,
): StageKernel[] {
  const pairs = params['new_tokens']! * params['context']!;
  // Indices have 8 bytes.
  const buckets = Array.from({ length: bucketKernels[isEncoder ? 'encoder' : 'decoder'] }, () => 16 * pairs);
  return more('position_bias', [...buckets, (8 + 4 * headCount) * pairs]);
}

/**
 * SDPA refuses the bias of T5, because its last dimension is strided, and computes attention in float32 with one kernel for each step: query
 * and key scaled, scores, bias, softmax, a check for rows without any key, and values.
 */
function separateAttention(
  kernel: StageKernel,
  { headCount: H, headDim }: GroupedAttention,
  element: number,
  isEncoder: boolean,
  more: MoreKernels,
): StageKernel[] {
  const { batch: B, new_tokens: queries, context: keys } = kernel.params as Record<string, number>;
  const q = B! * H * queries! * headDim;
  const k = B! * H * keys! * headDim;
  const scores = B! * H * queries! * keys!;
  const cast = (...counts: number[]) => (element === 4 ? [] : counts.map((n) => (element + 4) * n));
  const gemm = (n: number, inner: number): StageKernel => ({
    ...kernel,
    kernel: 'gemm',
    dtype: 'float32',
    params: { m: queries!, n, k: inner, batch: B! * H },
    flops: kernel.flops / 2,
    bytes: 4 * (q + k + scores),
  });
  // A prompt's transposed queries, keys and values are copied for the GEMMs, and the output back.
  const copied = (...counts: number[]) => (isEncoder ? counts.map((n) => 8 * n) : []);
  const steps = (bytes: number[]) =>
    more(kernel.op, bytes).map((step): StageKernel => ({ ...step, class: 'attention' }));
  return [
    ...steps([...cast(q, k, k), 8 * q, 8 * k, ...copied(q, k)]),
    gemm(keys!, headDim),
    ...steps([12 * scores, 8 * scores, 5 * scores, scores, 0, 9 * scores, ...cast(scores), ...copied(k)]),
    gemm(headDim, keys!),
    ...steps([...cast(q), ...copied(q)]),
  ];
}
