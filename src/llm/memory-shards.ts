import { InferscopeError } from '../model/errors.js';
import { joinWithOr } from '../vocabulary/sentence.js';
import type { Architecture, Layer } from './architecture.js';
import type { MemoryEngine, Parallelism } from './memory-request.js';
import { splitsKvHeads } from './kv-cache.js';
import { layerTensors, lmHead, modelTensors, type Tensor } from './tensors.js';

/** One device's place in the groups; devices of the same pipeline rank have the same amount of memory. */
export interface Device {
  gpu: number;
  pipelineRank: number;
  layers: Layer[];
  /** Its layers of different structure, each once. */
  kinds: Layer[];
  tensors: Tensor[];
}

/** Matrices with split inputs; their biases are replicated on every device. */
const rowSplit = new Set([
  'o_proj',
  'out_proj',
  'x_proj',
  'down_proj',
  'experts_down_proj',
  'shared_down_proj',
]);
/** Small matrices that are replicated on every device: the latent projections of MLA, the gate of a shared expert. */
const unsplit = new Set([
  'q_a_proj',
  'kv_a_proj',
  'shared_expert_gate',
  'router',
  'project_in',
  'project_out',
]);

/**
 * Total number of devices. Expert groups larger than the tensor group run attention on several replicas (vLLM's data
 * parallelism).
 */
export function deviceCount({ tensor, pipeline, expert }: Parallelism): number {
  return pipeline * Math.max(tensor, expert);
}

/**
 * Tensors of each device. Attention and MLP matrices are split over the tensor group (Megatron-LM, arXiv 1909.08053,
 * section 3): QKV, gate and up by rows, output and down by columns; KV heads are repeated if there are fewer than
 * devices; routers, norms and latent projections are replicated. Experts are spread over the expert group. Layers are
 * spread over the pipeline, the remainder from the last rank but one backwards (vLLM `get_pp_indices`); the embedding
 * and a vision tower are on the first rank, final norm and lm_head on the last, which has its own copy of a tied embedding. vLLM splits
 * embedding and lm_head over the vocabulary, padded to 64 rows; transformers splits only an untied lm_head.
 * @throws E_USAGE if something does not divide
 */
export function devices(a: Architecture, parallel: Parallelism, engine: MemoryEngine): Device[] {
  checkParallel(a, parallel);
  const { tensor, pipeline, expert } = parallel;
  const devicesPerRank = Math.max(tensor, expert);
  let first = 0;
  return layerCounts(a.layers.length, pipeline).flatMap((count, pipelineRank) => {
    const layers = a.layers.slice(first, first + count);
    first += count;
    const tensors = [
      ...tensorsOutsideLayers(a, pipelineRank, pipeline, tensor, engine),
      ...layers.flatMap((layer) =>
        layerTensors(a, layer).map((weight) => layerShard(weight, layer, parallel)),
      ),
    ];
    const place = { pipelineRank, layers, kinds: distinct(layers), tensors };
    return Array.from({ length: devicesPerRank }, (_, rank) => ({
      gpu: pipelineRank * devicesPerRank + rank,
      ...place,
    }));
  });
}

function distinct(layers: readonly Layer[]): Layer[] {
  const layerByShape = new Map<string, Layer>();
  for (const layer of layers) {
    const { index: _, ...structure } = layer;
    const key = JSON.stringify(structure);
    if (!layerByShape.has(key)) layerByShape.set(key, layer);
  }
  return [...layerByShape.values()];
}

/** Layers of each pipeline rank. */
function layerCounts(layers: number, pipeline: number): number[] {
  const counts = Array.from({ length: pipeline }, () => Math.floor(layers / pipeline));
  for (let remaining = layers % pipeline, rank = pipeline - 2; remaining > 0; remaining -= 1, rank -= 1)
    counts[rank]! += 1;
  return counts;
}

function tensorsOutsideLayers(
  a: Architecture,
  rank: number,
  pipeline: number,
  tensor: number,
  engine: MemoryEngine,
): Tensor[] {
  const isFirst = rank === 0;
  const isLast = rank === pipeline - 1;
  const list = modelTensors(a)
    .filter(({ name, component }) =>
      name.startsWith('embed_') || name === 'project_in' || component === 'vision' ? isFirst : isLast,
    )
    .map((weight) => outsideShard(weight, tensor, engine));
  if (a.tiedEmbeddings && isLast && !isFirst) {
    list.push(outsideShard({ ...lmHead(a), name: 'embed_tokens' }, tensor, engine));
  } else if (a.tiedEmbeddings && isLast && lmHead(a).bias > 0) {
    // The matrix is the embedding's; a bias belongs to the lm_head.
    list.push({ ...lmHead(a), rows: 0, columns: 0, kind: 'vector' });
  }
  return list;
}

function outsideShard(weight: Tensor, tensor: number, engine: MemoryEngine): Tensor {
  // vLLM also splits the layers of a vision tower (clip.py, siglip.py, qwen2_vl.py).
  if (weight.component === 'vision' && weight.kind === 'linear' && weight.count > 1 && engine === 'vllm')
    return splitTensor(weight, tensor);
  const overVocabulary = weight.name === 'embed_tokens' || weight.name === 'lm_head';
  if (!overVocabulary) return weight;
  const rows = engine === 'vllm' ? Math.ceil(weight.rows / 64) * 64 : weight.rows;
  const split = engine === 'vllm' || weight.name === 'lm_head' ? tensor : 1;
  return { ...weight, rows: Math.ceil(rows / split), bias: Math.ceil(weight.bias / split) };
}

function layerShard(weight: Tensor, layer: Layer, { tensor, expert }: Parallelism): Tensor {
  // States and their convolution are split with their channels and heads.
  if (weight.name === 'conv' || weight.name === 'scan_parameters') return splitTensor(weight, tensor);
  if (weight.kind === 'vector' || weight.component === 'projection' || unsplit.has(weight.name))
    return weight;
  if (weight.component === 'experts') {
    // An expert group smaller than the tensor group splits each expert over the remaining factor.
    const remainingFactor = expert === 1 ? tensor : Math.max(1, tensor / expert);
    const perDevice = { ...weight, count: weight.count / expert, active: weight.active / expert };
    return splitTensor(perDevice, remainingFactor);
  }
  if ((weight.name === 'k_proj' || weight.name === 'v_proj') && layer.attention.kind === 'grouped') {
    const { kvHeadCount } = layer.attention;
    return splitTensor(weight, Math.min(tensor, kvHeadCount));
  }
  return splitTensor(weight, tensor);
}

function splitTensor(tensor: Tensor, by: number): Tensor {
  return rowSplit.has(tensor.name)
    ? { ...tensor, columns: Math.ceil(tensor.columns / by) }
    : { ...tensor, rows: Math.ceil(tensor.rows / by), bias: Math.ceil(tensor.bias / by) };
}

/** Sizes of a tensor-parallel group over which every layer's heads and KV heads can be split. */
function tensorParallelSizes({ layers }: Architecture): number[] {
  const sizes = Array.from({ length: Math.min(...layers.map(({ attention }) => attention.headCount)) });
  return sizes
    .map((_, index) => index + 1)
    .filter((size) =>
      layers.every(
        ({ attention }) =>
          attention.headCount % size === 0 &&
          (attention.kind !== 'grouped' || splitsKvHeads(attention.kvHeadCount, size)),
      ),
    );
}

function checkParallel(a: Architecture, { tensor, pipeline, expert }: Parallelism): void {
  const fail = (what: string, why: string, fix: string): never => {
    throw new InferscopeError('E_USAGE', { what, why, fix });
  };
  for (const [name, size] of Object.entries({ tensor, pipeline, expert })) {
    if (!Number.isInteger(size) || size < 1) {
      fail(`impossible ${name}-parallel size: ${size}`, 'It counts devices.', `Give a whole number from 1.`);
    }
  }
  const heads = a.layers.map(({ attention }) => attention.headCount).find((count) => count % tensor !== 0);
  if (heads !== undefined) {
    fail(
      `${heads} attention heads cannot be split over a tensor-parallel group of ${tensor}`,
      'Each device computes a whole number of heads.',
      `Give --tensor-parallel-size ${joinWithOr(tensorParallelSizes(a).map(String))}.`,
    );
  }
  if (pipeline > a.layers.length) {
    fail(
      `a pipeline of ${pipeline} devices for ${a.layers.length} layers`,
      'Each device needs at least one layer.',
      `Give a --pipeline-parallel-size up to ${a.layers.length}.`,
    );
  }
  if (expert === 1) return;
  const experts = a.layers.flatMap(({ mlp }) => (mlp.kind === 'moe' ? [mlp.expertCount] : []))[0];
  if (experts === undefined) {
    fail(
      `no experts to spread over ${expert} devices`,
      'The model is dense.',
      'Leave --expert-parallel-size out.',
    );
  } else if (experts % expert !== 0 || (expert % tensor !== 0 && tensor % expert !== 0)) {
    fail(
      `${experts} experts cannot be spread over ${expert} devices with a tensor-parallel group of ${tensor}`,
      'Each device holds a whole number of experts, and one group divides the other.',
      `Give an --expert-parallel-size that divides ${experts}.`,
    );
  }
}
