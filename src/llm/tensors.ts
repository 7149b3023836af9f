import type {
  Architecture,
  ExtraTensor,
  GroupedAttention,
  LatentAttention,
  Layer,
  MoeMlp,
  RecurrentMixer,
} from './architecture.js';

/** Component of a weight; every parameter is in exactly one. */
export const components = [
  'embedding',
  'position_embedding',
  'projection',
  'attention',
  'mlp',
  'router',
  'experts',
  'shared_experts',
  'norm',
  'lm_head',
  'vision',
] as const;
export type Component = (typeof components)[number];

/**
 * One weight of the model. linear: y = W x with W [rows = out, columns = in]. embedding: rows are looked up. vector:
 * norm weights, router biases; `rows` elements, columns 1.
 */
export interface Tensor {
  name: string;
  layer: number | null;
  component: Component;
  kind: 'linear' | 'embedding' | 'vector';
  rows: number;
  columns: number;
  /** Elements of its bias; 0 without. */
  bias: number;
  /** Number of copies: 1, or one per expert. */
  count: number;
  /** Copies used per token. */
  active: number;
}

type Part = Pick<Tensor, 'layer' | 'component'>;

function linear(part: Part, name: string, rows: number, columns: number, bias = false): Tensor {
  return { ...part, name, kind: 'linear', rows, columns, bias: bias ? rows : 0, count: 1, active: 1 };
}

function vector(part: Part, name: string, rows: number, bias = false): Tensor {
  return { ...part, name, kind: 'vector', rows, columns: 1, bias: bias ? rows : 0, count: 1, active: 1 };
}

function embedding(component: Component, name: string, rows: number, columns: number): Tensor {
  return { layer: null, component, name, kind: 'embedding', rows, columns, bias: 0, count: 1, active: 1 };
}

/** Parameters in one copy of a tensor, bias included. */
export function parametersOf(tensor: Tensor): number {
  return tensor.rows * tensor.columns + tensor.bias;
}

/** Weights outside the layers, in order of use. A tied lm_head is the embedding and is not listed. */
export function modelTensors(a: Architecture): Tensor[] {
  const D = a.hiddenSize;
  const isProjected = a.embeddingDim !== D;
  const projection: Part = { layer: null, component: 'projection' };
  const norm = (name: string): Tensor =>
    vector({ layer: null, component: 'norm' }, name, D, a.norm === 'layernorm');
  const list = [embedding('embedding', 'embed_tokens', a.vocabSize, a.embeddingDim)];
  if (a.positionRows > 0) {
    list.push(embedding('position_embedding', 'embed_positions', a.positionRows, D));
  }
  if (isProjected) list.push(linear(projection, 'project_in', D, a.embeddingDim));
  if (a.embeddingNorm) list.push(norm('embedding_norm'));
  if (a.finalNorm) list.push(norm('final_norm'));
  if (a.encoder) {
    const { positionRows, convolutions } = a.encoder;
    if (convolutions) {
      const { melBins, kernel } = convolutions;
      list.push(linear(projection, 'conv1', D, melBins * kernel, true));
      list.push(linear(projection, 'conv2', D, D * kernel, true));
    }
    if (positionRows > 0)
      list.push(embedding('position_embedding', 'encoder_embed_positions', positionRows, D));
    if (a.embeddingNorm) list.push(norm('encoder_embedding_norm'));
    if (a.finalNorm) list.push(norm('encoder_final_norm'));
  }
  if (isProjected) list.push(linear(projection, 'project_out', a.embeddingDim, D));
  list.push(...a.extra.map((tensor) => extraTensor(tensor, null)));
  for (const tensor of a.vision?.tensors ?? [])
    list.push({ ...tensor, layer: null, component: 'vision', active: tensor.count });
  if (!a.tiedEmbeddings) list.push(lmHead(a));
  return list;
}

/** The output projection [vocab, embedding width], tied or not. */
export function lmHead(a: Architecture): Tensor {
  return linear({ layer: null, component: 'lm_head' }, 'lm_head', a.vocabSize, a.embeddingDim, a.lmHeadBias);
}

/** Weights of one layer. */
export function layerTensors(a: Architecture, layer: Layer): Tensor[] {
  return [
    ...attentionTensors(a, layer),
    ...mlpTensors(a, layer),
    ...normTensors(a, layer),
    ...layer.extra.map((tensor) => extraTensor(tensor, layer.index)),
  ];
}

function extraTensor({ name, kind, rows, columns }: ExtraTensor, layer: number | null): Tensor {
  const component = kind === 'linear' ? 'projection' : kind === 'vector' ? 'norm' : 'embedding';
  return { name, layer, component, kind, rows, columns, bias: 0, count: 1, active: 1 };
}

/** All weights of the model, each once. */
export function allTensors(a: Architecture): Tensor[] {
  return [...modelTensors(a), ...a.layers.flatMap((layer) => layerTensors(a, layer))];
}

function attentionTensors(a: Architecture, { index, attention, cross }: Layer): Tensor[] {
  const part: Part = { layer: index, component: 'attention' };
  if (attention.kind === 'recurrent') return recurrentTensors(a, part, attention);
  if (attention.kind === 'latent') return latentTensors(a, part, attention);
  const ofSource = cross ? groupedTensors(a, part, cross) : [];
  return [
    ...groupedTensors(a, part, attention),
    ...ofSource.map((tensor) => ({ ...tensor, name: `cross_${tensor.name}` })),
  ];
}

function groupedTensors(a: Architecture, part: Part, attention: GroupedAttention): Tensor[] {
  const D = a.hiddenSize;
  const { headCount, kvHeadCount, headDim, qkvBias, outputBias, qkNorm, qkNormWide } = attention;
  const queries = headCount * headDim * (attention.outputGate ? 2 : 1);
  const list = [linear(part, 'q_proj', queries, D, qkvBias)];
  if (!attention.sharedKv) {
    list.push(linear(part, 'k_proj', kvHeadCount * headDim, D, attention.keyBias ?? qkvBias));
    list.push(linear(part, 'v_proj', kvHeadCount * headDim, D, qkvBias));
  }
  list.push(linear(part, 'o_proj', D, headCount * headDim, outputBias));
  if (attention.sinks) list.push(vector(part, 'sinks', headCount));
  if (attention.positionBias) list.push(vector(part, 'position_bias', attention.positionBias));
  if (qkNorm !== 'none') {
    const norm: Part = { ...part, component: 'norm' };
    const width = (heads: number): number => (qkNormWide ? heads * headDim : headDim);
    list.push(vector(norm, 'q_norm', width(headCount), qkNorm === 'layernorm'));
    if (!attention.sharedKv) list.push(vector(norm, 'k_norm', width(kvHeadCount), qkNorm === 'layernorm'));
  }
  return list;
}

function recurrentTensors(a: Architecture, part: Part, mixer: RecurrentMixer): Tensor[] {
  const D = a.hiddenSize;
  const { inRows, innerSize, projectionBias, convChannels, convKernel, convBias, inner } = mixer;
  return [
    linear(part, 'in_proj', inRows, D, projectionBias),
    // One filter per channel: not a GEMM over the channels.
    { ...vector(part, 'conv', convChannels * convKernel), bias: convBias ? convChannels : 0 },
    ...(inner
      ? [
          linear(part, 'x_proj', inner.rank + 2 * inner.stateSize, innerSize),
          linear(part, 'dt_proj', innerSize, inner.rank, true),
        ]
      : []),
    vector(part, 'scan_parameters', mixer.vectorElements),
    linear(part, 'out_proj', D, innerSize, projectionBias),
  ];
}

function latentTensors(a: Architecture, part: Part, attention: LatentAttention): Tensor[] {
  const D = a.hiddenSize;
  const { headCount, queryRank, kvRank, nopeDim, ropeDim, valueDim, bias } = attention;
  const norm: Part = { ...part, component: 'norm' };
  const queries = headCount * (nopeDim + ropeDim);
  return [
    ...(queryRank === null
      ? [linear(part, 'q_proj', queries, D)]
      : [
          linear(part, 'q_a_proj', queryRank, D, bias),
          vector(norm, 'q_a_norm', queryRank),
          linear(part, 'q_b_proj', queries, queryRank),
        ]),
    linear(part, 'kv_a_proj', kvRank + ropeDim, D, bias),
    vector(norm, 'kv_a_norm', kvRank),
    linear(part, 'kv_b_proj', headCount * (nopeDim + valueDim), kvRank),
    linear(part, 'o_proj', D, headCount * valueDim, bias),
  ];
}

function mlpTensors(a: Architecture, { index, mlp }: Layer): Tensor[] {
  const D = a.hiddenSize;
  if (mlp.kind === 'dense') {
    const part: Part = { layer: index, component: 'mlp' };
    const { gated, intermediateSize: I, bias } = mlp;
    return [
      ...(gated ? [linear(part, 'gate_proj', I, D, bias)] : []),
      linear(part, 'up_proj', I, D, bias),
      linear(part, 'down_proj', D, I, bias),
    ];
  }
  if (mlp.kind === 'none') return [];
  return moeTensors(D, index, mlp);
}

function moeTensors(D: number, index: number, mlp: MoeMlp): Tensor[] {
  const router: Part = { layer: index, component: 'router' };
  const experts: Part = { layer: index, component: 'experts' };
  const shared: Part = { layer: index, component: 'shared_experts' };
  const expert = (name: string, rows: number, columns: number): Tensor => ({
    ...linear(experts, name, rows, columns, mlp.bias),
    count: mlp.expertCount,
    active: mlp.expertsPerToken,
  });
  const S = mlp.sharedIntermediateSize;
  return [
    linear(router, 'router', mlp.expertCount, D, mlp.bias),
    ...(mlp.routerBias ? [vector(router, 'router_bias', mlp.expertCount)] : []),
    expert('experts_gate_proj', mlp.intermediateSize, D),
    expert('experts_up_proj', mlp.intermediateSize, D),
    expert('experts_down_proj', D, mlp.intermediateSize),
    ...(S > 0
      ? [
          linear(shared, 'shared_gate_proj', S, D),
          linear(shared, 'shared_up_proj', S, D),
          linear(shared, 'shared_down_proj', D, S),
        ]
      : []),
    ...(mlp.sharedGate ? [linear(shared, 'shared_expert_gate', 1, D)] : []),
  ];
}

/** Names of a layer's norms, in order of use. */
const normNames = {
  pre: ['input_norm', 'post_attention_norm'],
  sandwich: ['input_norm', 'post_attention_norm', 'pre_feedforward_norm', 'post_feedforward_norm'],
  parallel: ['input_norm'],
  'parallel-two': ['input_norm', 'post_attention_norm'],
  single: ['input_norm'],
  post: ['attention_norm', 'mlp_norm'],
} as const;

function normTensors(a: Architecture, { index, cross }: Layer): Tensor[] {
  const part: Part = { layer: index, component: 'norm' };
  const names: readonly string[] = normNames[a.norms];
  return [...names, ...(cross ? ['cross_attention_norm'] : [])].map((name) =>
    vector(part, name, a.hiddenSize, a.norm === 'layernorm'),
  );
}
