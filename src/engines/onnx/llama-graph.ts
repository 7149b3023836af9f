import { type Builder, type GraphOptions, graphBuilder } from './graph-builder.js';
import { linear, lmHead } from './linear.js';
import type { LlamaConfig } from './llama-config.js';
import { tensorBytes, type OnnxGraph, type OnnxValue } from './onnx-file.js';
import { randomMatrix, randomVector } from './random-weights.js';
import { rotaryTables } from './rotary.js';

/** Increase it when equal config, dtype and seed give other files, so that cached models are rewritten. */
export const writerVersion = 1;

/** onnx.proto TensorProto.DataType.INT32, for Cast. */
const int32 = 6;

/** The residual stream (Σ of earlier layers) and the latest layer's addition; the next norm adds them. */
interface Stream {
  sum: string;
  delta: string | null;
}

/**
 * A Llama-architecture decoder in the form of optimum and onnxruntime-genai exports: input_ids, attention_mask,
 * position_ids [batch, sequence] and past_key_values.N.{key,value} [batch, kv heads, past, head_dim] to logits and
 * present.N.{key,value}. Weights are random with unit-variance outputs: std 1/√in for linear layers and embedding, so
 * that attention scores and logits have a standard deviation of about 1, as in trained models at temperature 1.
 *
 * Every node's name has its layer and role, because the profiler reports only names:
 * `/model/layers.3/self_attn/q_proj/MatMul`. q, k, v and gate, up stay separate GEMMs as in the config; fusing them
 * made no measurable difference (7.5 against 7.6 ms per token, 24 M parameters, one core).
 */
export function llamaGraph(config: LlamaConfig, options: GraphOptions): OnnxGraph {
  const { b, nodes, tensors } = graphBuilder(config, options);
  const embedding = b.constant(
    randomMatrix(
      'model.embed_tokens.weight',
      options.seed,
      config.vocabSize,
      config.hiddenSize,
      config.hiddenSize ** -0.5,
    ),
  );
  const positions = positionInputs(b);
  let stream: Stream = {
    sum: b.node('Gather', '/model/embed_tokens/Gather', [embedding, 'input_ids']),
    delta: null,
  };
  for (let layer = 0; layer < config.numLayers; layer++) {
    stream = attention(b, layer, stream, positions);
    stream = mlp(b, layer, stream);
  }
  if (options.logits === 'last') stream = lastToken(b, stream);
  const { normed } = addNorm(b, '/model/norm', 'model.norm', stream, false);
  lmHead(b, normed, embedding);
  return { name: config.modelType, nodes, tensors, ...signature(config, options), metadata: {} };
}

interface Positions {
  seqlens: string;
  total: string;
  cos: string;
  sin: string;
}

/** GroupQueryAttention takes the length as seqlens_k [batch] = keys − 1 and total_sequence_length, both int32. */
function positionInputs(b: Builder): Positions {
  const mask = '/model/attn_mask';
  const { cos, sin } = rotaryTables(b.config.rope, b.config.headDim, b.config.maxPositions);
  const one = int64(b, `${mask}/one`, [1]);
  const index = int64(b, `${mask}/index`, 1);
  const keys = b.node('ReduceSum', `${mask}/ReduceSum`, ['attention_mask', one], { keepdims: { int: 0 } });
  const less = b.node('Sub', `${mask}/Sub`, [keys, one]);
  const shape = b.node('Shape', `${mask}/Shape`, ['attention_mask']);
  const length = b.node('Gather', `${mask}/Gather`, [shape, index], { axis: { int: 0 } });
  return {
    seqlens: b.node('Cast', `${mask}/seqlens_k/Cast`, [less], { to: { int: int32 } }),
    total: b.node('Cast', `${mask}/total_sequence_length/Cast`, [length], { to: { int: int32 } }),
    cos: b.constant(cos),
    sin: b.constant(sin),
  };
}

function attention(b: Builder, layer: number, stream: Stream, positions: Positions): Stream {
  const { config } = b;
  const { numHeads, numKvHeads, headDim, hiddenSize } = config;
  const prefix = `/model/layers.${layer}/self_attn`;
  const weights = `model.layers.${layer}.self_attn`;
  const { normed, sum } = addNorm(
    b,
    `/model/layers.${layer}/input_layernorm`,
    `model.layers.${layer}.input_layernorm`,
    stream,
  );
  const project = (role: string, heads: number) =>
    linear(b, normed, `${prefix}/${role}`, `${weights}.${role}`, hiddenSize, heads * headDim, config.qkvBias);
  let query = project('q_proj', numHeads);
  let key = project('k_proj', numKvHeads);
  const value = project('v_proj', numKvHeads);
  if (config.qkNorm) {
    query = headNorm(b, query, `${prefix}/q_norm`, `${weights}.q_norm`, numHeads);
    key = headNorm(b, key, `${prefix}/k_norm`, `${weights}.k_norm`, numKvHeads);
  }
  const attended = `${prefix}/GroupQueryAttention/output_0`;
  const window = config.slidingWindow[layer];
  b.nodeTo(
    [attended, `present.${layer}.key`, `present.${layer}.value`],
    'GroupQueryAttention',
    `${prefix}/GroupQueryAttention`,
    [
      query,
      key,
      value,
      `past_key_values.${layer}.key`,
      `past_key_values.${layer}.value`,
      positions.seqlens,
      positions.total,
      positions.cos,
      positions.sin,
      'position_ids',
    ],
    {
      num_heads: { int: numHeads },
      kv_num_heads: { int: numKvHeads },
      scale: { float: headDim ** -0.5 },
      do_rotary: { int: 1 },
      rotary_interleaved: { int: 0 },
      ...(window ? { local_window_size: { int: window } } : {}),
    },
  );
  const delta = linear(
    b,
    attended,
    `${prefix}/o_proj`,
    `${weights}.o_proj`,
    numHeads * headDim,
    hiddenSize,
    config.outputBias,
  );
  return { sum, delta };
}

function mlp(b: Builder, layer: number, stream: Stream): Stream {
  const { hiddenSize, intermediateSize, mlpBias } = b.config;
  const prefix = `/model/layers.${layer}/mlp`;
  const weights = `model.layers.${layer}.mlp`;
  const { normed, sum } = addNorm(
    b,
    `/model/layers.${layer}/post_attention_layernorm`,
    `model.layers.${layer}.post_attention_layernorm`,
    stream,
  );
  const widen = (role: string) =>
    linear(b, normed, `${prefix}/${role}`, `${weights}.${role}`, hiddenSize, intermediateSize, mlpBias);
  const gate = widen('gate_proj');
  const up = widen('up_proj');
  // QuickGelu is x · sigmoid(αx): SiLU at α = 1, in one pass over memory instead of two.
  const activated = b.node('QuickGelu', `${prefix}/act_fn/QuickGelu`, [gate], { alpha: { float: 1 } });
  const gated = b.node('Mul', `${prefix}/Mul`, [activated, up]);
  return {
    sum,
    delta: linear(
      b,
      gated,
      `${prefix}/down_proj`,
      `${weights}.down_proj`,
      intermediateSize,
      hiddenSize,
      mlpBias,
    ),
  };
}

/** RMSNorm of sum + delta in one operator, which also outputs the new sum (output 3) if it is needed. */
function addNorm(
  b: Builder,
  prefix: string,
  weights: string,
  stream: Stream,
  keepSum = true,
): { normed: string; sum: string } {
  const epsilon = { float: b.config.rmsNormEps };
  const scale = b.constant(randomVector(`${weights}.weight`, b.options.seed, b.config.hiddenSize, 1, 0.1));
  if (stream.delta === null) {
    const attributes = { epsilon, axis: { int: -1 }, stash_type: { int: 1 } };
    const normed = b.node(
      'SimplifiedLayerNormalization',
      `${prefix}/LayerNorm`,
      [stream.sum, scale],
      attributes,
    );
    return { normed, sum: stream.sum };
  }
  const name = `${prefix}/SkipLayerNorm`;
  const outputs = [`${name}/output_0`, ...(keepSum ? ['', '', `${name}/output_3`] : [])];
  b.nodeTo(outputs, 'SkipSimplifiedLayerNormalization', name, [stream.sum, stream.delta, scale], { epsilon });
  return { normed: `${name}/output_0`, sum: `${name}/output_3` };
}

/** RMSNorm over head_dim: [batch, sequence, heads · head_dim] reshaped to [batch, sequence, heads, head_dim]. */
function headNorm(b: Builder, input: string, prefix: string, weights: string, heads: number): string {
  const { headDim, rmsNormEps } = b.config;
  // In Reshape 0 keeps a dimension.
  const split = b.node('Reshape', `${prefix}/split/Reshape`, [
    input,
    int64(b, `${prefix}/split/shape`, [0, 0, heads, headDim]),
  ]);
  const scale = b.constant(randomVector(`${weights}.weight`, b.options.seed, headDim, 1, 0.1));
  const normed = b.node('SimplifiedLayerNormalization', `${prefix}/LayerNorm`, [split, scale], {
    epsilon: { float: rmsNormEps },
    axis: { int: -1 },
    stash_type: { int: 1 },
  });
  return b.node('Reshape', `${prefix}/merge/Reshape`, [
    normed,
    int64(b, `${prefix}/merge/shape`, [0, 0, heads * headDim]),
  ]);
}

function lastToken(b: Builder, stream: Stream): Stream {
  const last = int64(b, '/model/last_token/index', [-1]);
  const axis = { axis: { int: 1 } };
  return {
    sum: b.node('Gather', '/model/last_token/residual/Gather', [stream.sum, last], axis),
    delta: stream.delta && b.node('Gather', '/model/last_token/Gather', [stream.delta, last], axis),
  };
}

function int64(b: Builder, name: string, values: number[] | number): string {
  const list = Array.isArray(values) ? values : [values];
  return b.constant({
    name,
    type: 'int64',
    shape: Array.isArray(values) ? [values.length] : [],
    chunks: () => [new Uint8Array(BigInt64Array.from(list, BigInt).buffer)],
  });
}

function signature(
  config: LlamaConfig,
  options: GraphOptions,
): { inputs: OnnxValue[]; outputs: OnnxValue[] } {
  const cache = (prefix: string, length: string): OnnxValue[] =>
    Array.from({ length: config.numLayers }, (_, layer) =>
      ['key', 'value'].map((role): OnnxValue => ({
        name: `${prefix}.${layer}.${role}`,
        type: 'float32',
        shape: ['batch_size', config.numKvHeads, length, config.headDim],
      })),
    ).flat();
  const tokens = (name: string, length = 'sequence_length'): OnnxValue => ({
    name,
    type: 'int64',
    shape: ['batch_size', length],
  });
  const positions = options.logits === 'last' ? 1 : 'sequence_length';
  return {
    inputs: [
      tokens('input_ids'),
      tokens('attention_mask', 'total_sequence_length'),
      tokens('position_ids'),
      ...cache('past_key_values', 'past_sequence_length'),
    ],
    outputs: [
      { name: 'logits', type: 'float32', shape: ['batch_size', positions, config.vocabSize] },
      ...cache('present', 'total_sequence_length'),
    ],
  };
}

/** Bytes of a checkpoint's tensors (weights, scales, biases, norms), without rotary tables and int64 shapes. */
export function parameterBytes(graph: OnnxGraph): number {
  return graph.tensors
    .filter((tensor) => tensor.type !== 'int64' && !tensor.name.startsWith('rotary.'))
    .reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
}
