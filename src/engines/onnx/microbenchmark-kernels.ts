import { convSide } from '../../llm/kernel-work.js';
import type { KernelName } from '../../model/kernels.js';
import { floats, type HostArray, ids, int32, integers } from './microbenchmark-arrays.js';
import * as reference from './microbenchmark-reference.js';
import type { OnnxNode, OnnxValue } from './onnx-file.js';

/** One copy of an operation as nodes of a graph; names start with `prefix`, so that several copies fit in one graph. */
export interface KernelNodes {
  nodes: OnnxNode[];
  /** Weights, which the runtime packs once. */
  constants: HostArray[];
  /** Arrays fed in every run. */
  inputs: HostArray[];
  output: OnnxValue & { shape: number[] };
  /** Further outputs: a KV cache is written over its input; an empty `input` is a separate array. */
  inPlace: { output: OnnxValue & { shape: number[] }; input: string }[];
  /** The output's element at a flat index, in float64. */
  expected: (index: number) => number;
}

type Params = Readonly<Record<string, number>>;
type Build = (prefix: string, size: (name: string) => number) => KernelNodes;

/** Operations by the runtime's own kernels, fused as in the embedded engine's models (llama-graph.ts). */
const builders: Record<KernelName, Build> = {
  gemm: (prefix, size) => gemm(prefix, size('m'), size('n'), size('k'), false),
  linear: (prefix, size) =>
    gemm(prefix, size('tokens'), size('out_features'), size('in_features'), size('bias') === 1),
  conv2d: (prefix, size) => {
    const [cin, cout, k] = [size('channels'), size('out_channels'), size('kernel')];
    const pad = Math.floor(k / 2);
    const x = floats(`${prefix}x`, [size('batch'), cin, size('height'), size('width')]);
    const w = floats(`${prefix}w`, [cout, cin, k, k], (cin * k * k) ** -0.5);
    const shape = [size('batch'), cout, convSide(size('height'), k), convSide(size('width'), k)];
    return singleNode(prefix, 'Conv', { inputs: [x], constants: [w], shape }, reference.conv2d(x, w, pad), {
      pads: { ints: [pad, pad, pad, pad] },
      kernel_shape: { ints: [k, k] },
    });
  },
  lstm,
  'layernorm-gelu': (prefix, size) => {
    const hidden = size('hidden');
    const x = floats(`${prefix}x`, [size('tokens'), hidden]);
    const [scale, bias] = [floats(`${prefix}s`, [hidden]), floats(`${prefix}b`, [hidden])];
    const normed = `${prefix}n`;
    const kernel = singleNode(
      prefix,
      'LayerNormalization',
      { inputs: [x], constants: [scale, bias], shape: x.shape },
      reference.layernormGelu(x, scale, bias),
      { axis: { int: -1 }, epsilon: { float: reference.epsilon } },
    );
    kernel.nodes[0]!.outputs = [normed];
    kernel.nodes.push(node(prefix, 'Gelu', [normed], [kernel.output.name], {}, 'com.microsoft'));
    return kernel;
  },
  attention,
  softmax: (prefix, size) => {
    const x = floats(`${prefix}x`, [size('rows'), size('columns')], 3);
    return singleNode(
      prefix,
      'Softmax',
      { inputs: [x], constants: [], shape: x.shape },
      reference.softmax(x),
      {
        axis: { int: -1 },
      },
    );
  },
  rmsnorm: (prefix, size) => {
    const hidden = size('hidden');
    const x = floats(`${prefix}x`, [1, size('tokens'), hidden]);
    const scale = floats(`${prefix}s`, [hidden]);
    if (size('residual') === 0) {
      const expected = reference.rmsnorm(x, null, scale);
      return singleNode(
        prefix,
        'SimplifiedLayerNormalization',
        { inputs: [x], constants: [scale], shape: x.shape },
        expected,
        {
          axis: { int: -1 },
          epsilon: { float: reference.epsilon },
          stash_type: { int: 1 },
        },
      );
    }
    const residual = floats(`${prefix}r`, x.shape);
    const kernel = singleNode(
      prefix,
      'SkipSimplifiedLayerNormalization',
      { inputs: [x, residual], constants: [scale], shape: x.shape },
      reference.rmsnorm(x, residual, scale),
      { epsilon: { float: reference.epsilon } },
      'com.microsoft',
    );
    // The sum is the next residual: written too, but not compared.
    kernel.nodes[0]!.outputs.push('', '', `${prefix}sum`);
    kernel.inPlace.push({ output: value(`${prefix}sum`, x.shape), input: '' });
    return kernel;
  },
  swiglu: (prefix, size) => {
    const shape = [size('tokens'), size('intermediate')];
    const [gate, up] = [floats(`${prefix}g`, shape), floats(`${prefix}u`, shape)];
    const kernel = singleNode(
      prefix,
      'Mul',
      { inputs: [gate, up], constants: [], shape },
      reference.swiglu(gate, up),
      {},
    );
    // QuickGelu is x · sigmoid(αx): SiLU at α = 1.
    kernel.nodes[0]!.inputs[0] = `${prefix}act`;
    kernel.nodes.unshift(
      node(prefix, 'QuickGelu', [gate.name], [`${prefix}act`], { alpha: { float: 1 } }, 'com.microsoft'),
    );
    return kernel;
  },
  rope: (prefix, size) => {
    const [tokens, heads, dim] = [size('tokens'), size('heads') + size('kv_heads'), size('head_dim')];
    const x = floats(`${prefix}x`, [1, tokens, heads * dim]);
    const positions = integers(
      `${prefix}p`,
      Array.from({ length: tokens }, (_, i) => i),
    );
    positions.shape = [1, tokens];
    const { cos, sin } = reference.rotaryTables(prefix, tokens, dim);
    return singleNode(
      prefix,
      'RotaryEmbedding',
      { inputs: [x, positions], constants: [cos, sin], shape: x.shape },
      reference.rope(x, cos, sin, dim),
      { interleaved: { int: 0 }, num_heads: { int: heads } },
      'com.microsoft',
    );
  },
  embedding: (prefix, size) => {
    // One table for all copies, as in a model; it is fed, not packed.
    const table = floats('table', [size('vocab'), size('hidden')]);
    const tokens = ids(`${prefix}i`, [size('tokens')], size('vocab'));
    const shape = [size('tokens'), size('hidden')];
    return singleNode(
      prefix,
      'Gather',
      { inputs: [table, tokens], constants: [], shape },
      reference.gather(table, tokens),
      {
        axis: { int: 0 },
      },
    );
  },
  sampling: (prefix, size) => {
    const x = floats(`${prefix}x`, [size('batch'), size('vocab')]);
    const kernel = singleNode(
      prefix,
      'ArgMax',
      { inputs: [x], constants: [], shape: [size('batch')] },
      reference.argmax(x),
      {
        axis: { int: -1 },
        keepdims: { int: 0 },
      },
    );
    kernel.output.type = 'int64';
    return kernel;
  },
};

/** @throws Error if a parameter is missing */
export function kernelNodes(kernel: KernelName, params: Params, prefix: string): KernelNodes {
  return builders[kernel](prefix, (name) => {
    const size = params[name];
    if (size === undefined) throw new Error(`${kernel} needs ${name}`);
    return size;
  });
}

const value = (name: string, shape: number[]) => ({ name, type: 'float32' as const, shape });

function node(
  prefix: string,
  op: string,
  inputs: string[],
  outputs: string[],
  attributes: OnnxNode['attributes'] = {},
  domain: OnnxNode['domain'] = '',
): OnnxNode {
  return { op, domain, name: `${prefix}${op}`, inputs, outputs, attributes };
}

/** An operation of one node, with its constants after its inputs. */
function singleNode(
  prefix: string,
  op: string,
  { inputs, constants, shape }: { inputs: HostArray[]; constants: HostArray[]; shape: number[] },
  expected: KernelNodes['expected'],
  attributes: OnnxNode['attributes'],
  domain: OnnxNode['domain'] = '',
): KernelNodes {
  const output = value(`${prefix}y`, shape);
  const names = [...inputs, ...constants].map(({ name }) => name);
  return {
    nodes: [node(prefix, op, names, [output.name], attributes, domain)],
    constants,
    inputs,
    output,
    inPlace: [],
    expected,
  };
}

function gemm(prefix: string, m: number, n: number, k: number, bias: boolean): KernelNodes {
  const x = floats(`${prefix}x`, [m, k]);
  const w = floats(`${prefix}w`, [k, n], k ** -0.5);
  const b = bias ? floats(`${prefix}b`, [n]) : null;
  const size = { inputs: [x], constants: b ? [w, b] : [w], shape: [m, n] };
  return singleNode(prefix, b ? 'Gemm' : 'MatMul', size, reference.gemm(x, w, b), {});
}

/** Query heads over the runtime's own key/value cache, written in place (decoder-signature.ts). */
function attention(prefix: string, size: (name: string) => number): KernelNodes {
  const [batch, heads, kv, dim] = [size('batch'), size('heads'), size('kv_heads'), size('head_dim')];
  const [newTokens, context] = [size('new_tokens'), size('context')];
  const query = floats(`${prefix}q`, [batch, newTokens, heads * dim]);
  const [key, val] = [
    floats(`${prefix}k`, [batch, newTokens, kv * dim]),
    floats(`${prefix}v`, [batch, newTokens, kv * dim]),
  ];
  const [keys, values] = [
    floats(`${prefix}pk`, [batch, kv, context, dim]),
    floats(`${prefix}pv`, [batch, kv, context, dim]),
  ];
  const [last, total] = [int32(`${prefix}l`, [batch], context - 1), int32(`${prefix}t`, [1], context)];
  const expected = reference.attention(
    { query, key, val, keys, values },
    { heads, kv, dim, newTokens, context },
  );
  const kernel = singleNode(
    prefix,
    'GroupQueryAttention',
    { inputs: [query, key, val, keys, values, last, total], constants: [], shape: query.shape },
    expected,
    { num_heads: { int: heads }, kv_num_heads: { int: kv }, scale: { float: dim ** -0.5 } },
    'com.microsoft',
  );
  for (const cache of [keys, values]) {
    kernel.nodes[0]!.outputs.push(`${cache.name}_out`);
    kernel.inPlace.push({ output: value(`${cache.name}_out`, cache.shape), input: cache.name });
  }
  return kernel;
}

function lstm(prefix: string, size: (name: string) => number): KernelNodes {
  const [batch, seq, hidden, layers] = [size('batch'), size('seq'), size('hidden'), size('layers')];
  const x = floats(`${prefix}x`, [seq, batch, size('input')]);
  const nodes: OnnxNode[] = [];
  const weights = Array.from({ length: layers }, (_, layer) => {
    const width = layer === 0 ? size('input') : hidden;
    return {
      w: floats(`${prefix}w${layer}`, [1, 4 * hidden, width], width ** -0.5),
      r: floats(`${prefix}r${layer}`, [1, 4 * hidden, hidden], hidden ** -0.5),
      b: floats(`${prefix}b${layer}`, [1, 8 * hidden], 0.1),
    };
  });
  const axes = integers(`${prefix}axes`, [1]);
  const output = value(`${prefix}y`, [seq, batch, hidden]);
  let input = x.name;
  for (const [layer, { w, r, b }] of weights.entries()) {
    const [wide, flat] = [`${prefix}h${layer}`, layer === layers - 1 ? output.name : `${prefix}f${layer}`];
    nodes.push(
      node(`${prefix}${layer}`, 'LSTM', [input, w.name, r.name, b.name], [wide], {
        hidden_size: { int: hidden },
      }),
      node(`${prefix}${layer}`, 'Squeeze', [wide, axes.name], [flat]),
    );
    input = flat;
  }
  const constants = [axes, ...weights.flatMap(({ w, r, b }) => [w, r, b])];
  return { nodes, constants, inputs: [x], output, inPlace: [], expected: reference.lstm(x, weights, hidden) };
}
