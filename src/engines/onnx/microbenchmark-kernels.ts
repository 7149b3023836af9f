import { convSide } from '../../llm/kernel-work.js';
import type { KernelName } from '../../model/kernels.js';
import { floats, type HostArray, ids, int32, whole } from './microbenchmark-arrays.js';
import * as reference from './microbenchmark-reference.js';
import type { OnnxNode, OnnxValue } from './onnx-file.js';

/** One copy of an operation as nodes of a graph; names include `at`, so that several copies fit in one graph. */
export interface KernelNodes {
  nodes: OnnxNode[];
  /** Weights, which the runtime packs once. */
  constants: HostArray[];
  /** Arrays fed in every run. */
  inputs: HostArray[];
  output: OnnxValue & { shape: number[] };
  /** Outputs written over an input: a KV cache. */
  inPlace: { output: OnnxValue & { shape: number[] }; input: string }[];
  /** The output's element at a flat index, in float64. */
  expected: (index: number) => number;
}

type Params = Readonly<Record<string, number>>;
type Build = (at: string, size: (name: string) => number) => KernelNodes;

/** Operations by the runtime's own kernels, fused as in the embedded engine's models (llama-graph.ts). */
const builders: Record<KernelName, Build> = {
  gemm: (at, size) => product(at, size('m'), size('n'), size('k'), false),
  linear: (at, size) =>
    product(at, size('tokens'), size('out_features'), size('in_features'), size('bias') === 1),
  conv2d: (at, size) => {
    const [cin, cout, k] = [size('channels'), size('out_channels'), size('kernel')];
    const pad = Math.floor(k / 2);
    const x = floats(`${at}x`, [size('batch'), cin, size('height'), size('width')]);
    const w = floats(`${at}w`, [cout, cin, k, k], (cin * k * k) ** -0.5);
    const shape = [size('batch'), cout, convSide(size('height'), k), convSide(size('width'), k)];
    return singleNode(at, 'Conv', { inputs: [x], constants: [w], shape }, reference.conv2d(x, w, pad), {
      pads: { ints: [pad, pad, pad, pad] },
      kernel_shape: { ints: [k, k] },
    });
  },
  lstm,
  'layernorm-gelu': (at, size) => {
    const hidden = size('hidden');
    const x = floats(`${at}x`, [size('tokens'), hidden]);
    const [scale, bias] = [floats(`${at}s`, [hidden]), floats(`${at}b`, [hidden])];
    const normed = `${at}n`;
    const kernel = singleNode(
      at,
      'LayerNormalization',
      { inputs: [x], constants: [scale, bias], shape: x.shape },
      reference.layernormGelu(x, scale, bias),
      { axis: { int: -1 }, epsilon: { float: reference.epsilon } },
    );
    kernel.nodes[0]!.outputs = [normed];
    kernel.nodes.push(node(at, 'Gelu', [normed], [kernel.output.name], {}, 'com.microsoft'));
    return kernel;
  },
  attention,
  softmax: (at, size) => {
    const x = floats(`${at}x`, [size('rows'), size('columns')], 3);
    return singleNode(at, 'Softmax', { inputs: [x], constants: [], shape: x.shape }, reference.softmax(x), {
      axis: { int: -1 },
    });
  },
  rmsnorm: (at, size) => {
    const hidden = size('hidden');
    const x = floats(`${at}x`, [1, size('tokens'), hidden]);
    const scale = floats(`${at}s`, [hidden]);
    if (size('residual') === 0) {
      const expected = reference.rmsnorm(x, null, scale);
      return singleNode(
        at,
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
    const residual = floats(`${at}r`, x.shape);
    const kernel = singleNode(
      at,
      'SkipSimplifiedLayerNormalization',
      { inputs: [x, residual], constants: [scale], shape: x.shape },
      reference.rmsnorm(x, residual, scale),
      { epsilon: { float: reference.epsilon } },
      'com.microsoft',
    );
    // The sum is the next residual: written too, but not compared.
    kernel.nodes[0]!.outputs.push('', '', `${at}sum`);
    kernel.inPlace.push({ output: value(`${at}sum`, x.shape), input: '' });
    return kernel;
  },
  swiglu: (at, size) => {
    const shape = [size('tokens'), size('intermediate')];
    const [gate, up] = [floats(`${at}g`, shape), floats(`${at}u`, shape)];
    const kernel = singleNode(
      at,
      'Mul',
      { inputs: [gate, up], constants: [], shape },
      reference.swiglu(gate, up),
      {},
    );
    // QuickGelu is x · sigmoid(αx): SiLU at α = 1.
    kernel.nodes[0]!.inputs[0] = `${at}act`;
    kernel.nodes.unshift(
      node(at, 'QuickGelu', [gate.name], [`${at}act`], { alpha: { float: 1 } }, 'com.microsoft'),
    );
    return kernel;
  },
  rope: (at, size) => {
    const [tokens, heads, dim] = [size('tokens'), size('heads') + size('kv_heads'), size('head_dim')];
    const x = floats(`${at}x`, [1, tokens, heads * dim]);
    const positions = whole(
      `${at}p`,
      Array.from({ length: tokens }, (_, i) => i),
    );
    positions.shape = [1, tokens];
    const { cos, sin } = reference.rotaryTables(at, tokens, dim);
    return singleNode(
      at,
      'RotaryEmbedding',
      { inputs: [x, positions], constants: [cos, sin], shape: x.shape },
      reference.rope(x, cos, sin, dim),
      { interleaved: { int: 0 }, num_heads: { int: heads } },
      'com.microsoft',
    );
  },
  embedding: (at, size) => {
    // One table for all copies, as in a model; it is fed, not packed.
    const table = floats('table', [size('vocab'), size('hidden')]);
    const tokens = ids(`${at}i`, [size('tokens')], size('vocab'));
    const shape = [size('tokens'), size('hidden')];
    return singleNode(
      at,
      'Gather',
      { inputs: [table, tokens], constants: [], shape },
      reference.gather(table, tokens),
      {
        axis: { int: 0 },
      },
    );
  },
  sampling: (at, size) => {
    const x = floats(`${at}x`, [size('batch'), size('vocab')]);
    const kernel = singleNode(
      at,
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
export function kernelNodes(kernel: KernelName, params: Params, at: string): KernelNodes {
  return builders[kernel](at, (name) => {
    const found = params[name];
    if (found === undefined) throw new Error(`${kernel} needs ${name}`);
    return found;
  });
}

const value = (name: string, shape: number[]) => ({ name, type: 'float32' as const, shape });

function node(
  at: string,
  op: string,
  inputs: string[],
  outputs: string[],
  attributes: OnnxNode['attributes'] = {},
  domain: OnnxNode['domain'] = '',
): OnnxNode {
  return { op, domain, name: `${at}${op}`, inputs, outputs, attributes };
}

/** An operation of one node, with its constants after its inputs. */
function singleNode(
  at: string,
  op: string,
  { inputs, constants, shape }: { inputs: HostArray[]; constants: HostArray[]; shape: number[] },
  expected: KernelNodes['expected'],
  attributes: OnnxNode['attributes'],
  domain: OnnxNode['domain'] = '',
): KernelNodes {
  const output = value(`${at}y`, shape);
  const names = [...inputs, ...constants].map(({ name }) => name);
  return {
    nodes: [node(at, op, names, [output.name], attributes, domain)],
    constants,
    inputs,
    output,
    inPlace: [],
    expected,
  };
}

function product(at: string, m: number, n: number, k: number, bias: boolean): KernelNodes {
  const x = floats(`${at}x`, [m, k]);
  const w = floats(`${at}w`, [k, n], k ** -0.5);
  const b = bias ? floats(`${at}b`, [n]) : null;
  const size = { inputs: [x], constants: b ? [w, b] : [w], shape: [m, n] };
  return singleNode(at, b ? 'Gemm' : 'MatMul', size, reference.product(x, w, b), {});
}

/** Query heads over the runtime's own key/value cache, written in place (decoder-signature.ts). */
function attention(at: string, size: (name: string) => number): KernelNodes {
  const [batch, heads, kv, dim] = [size('batch'), size('heads'), size('kv_heads'), size('head_dim')];
  const [fresh, context] = [size('new_tokens'), size('context')];
  const query = floats(`${at}q`, [batch, fresh, heads * dim]);
  const [key, val] = [floats(`${at}k`, [batch, fresh, kv * dim]), floats(`${at}v`, [batch, fresh, kv * dim])];
  const [keys, values] = [
    floats(`${at}pk`, [batch, kv, context, dim]),
    floats(`${at}pv`, [batch, kv, context, dim]),
  ];
  const [last, total] = [int32(`${at}l`, [batch], context - 1), int32(`${at}t`, [1], context)];
  const expected = reference.attention({ query, key, val, keys, values }, { heads, kv, dim, fresh, context });
  const kernel = singleNode(
    at,
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

function lstm(at: string, size: (name: string) => number): KernelNodes {
  const [batch, seq, hidden, layers] = [size('batch'), size('seq'), size('hidden'), size('layers')];
  const x = floats(`${at}x`, [seq, batch, size('input')]);
  const nodes: OnnxNode[] = [];
  const weights = Array.from({ length: layers }, (_, layer) => {
    const width = layer === 0 ? size('input') : hidden;
    return {
      w: floats(`${at}w${layer}`, [1, 4 * hidden, width], width ** -0.5),
      r: floats(`${at}r${layer}`, [1, 4 * hidden, hidden], hidden ** -0.5),
      b: floats(`${at}b${layer}`, [1, 8 * hidden], 0.1),
    };
  });
  const axes = whole(`${at}axes`, [1]);
  const output = value(`${at}y`, [seq, batch, hidden]);
  let input = x.name;
  for (const [layer, { w, r, b }] of weights.entries()) {
    const [wide, flat] = [`${at}h${layer}`, layer === layers - 1 ? output.name : `${at}f${layer}`];
    nodes.push(
      node(`${at}${layer}`, 'LSTM', [input, w.name, r.name, b.name], [wide], {
        hidden_size: { int: hidden },
      }),
      node(`${at}${layer}`, 'Squeeze', [wide, axes.name], [flat]),
    );
    input = flat;
  }
  const constants = [axes, ...weights.flatMap(({ w, r, b }) => [w, r, b])];
  return { nodes, constants, inputs: [x], output, inPlace: [], expected: reference.lstm(x, weights, hidden) };
}
