import type { LlamaConfig } from './llama-config.js';
import type { Attribute, OnnxNode, OnnxTensor } from './onnx-file.js';

/** dtypes of the linear layers; embedding, norms, biases, activations and KV cache are float32 in both. */
export type GraphDType = 'float32' | 'int4';

export interface GraphOptions {
  dtype: GraphDType;
  seed: number;
  /** 'last': the lm_head runs only on the last position, which generation needs. 'all' is for checks. */
  logits: 'last' | 'all';
  /** Only for int4; see linear.ts. */
  computeInt4: 'int8' | 'float32';
}

/** A graph under construction, which layers add nodes to. */
export interface Builder {
  config: LlamaConfig;
  options: GraphOptions;
  /** Adds a node with one output, named `<name>/output_0`, and returns that name. */
  node(op: string, name: string, inputs: string[], attributes?: Record<string, Attribute>): string;
  /** Adds a node with named outputs; '' omits an optional output. */
  nodeTo(
    outputs: string[],
    op: string,
    name: string,
    inputs: string[],
    attributes?: Record<string, Attribute>,
  ): void;
  /** Adds a constant and returns its name. */
  constant(tensor: OnnxTensor): string;
}

/**
 * Operators of ONNX Runtime's own set; the others are ONNX's (SimplifiedLayerNormalization is registered there too).
 */
const contribOps = new Set([
  'FusedMatMul',
  'GroupQueryAttention',
  'MatMulNBits',
  'QuickGelu',
  'SkipSimplifiedLayerNormalization',
]);

/** A graph under construction and the lists that it fills. */
export function graphBuilder(
  config: LlamaConfig,
  options: GraphOptions,
): { b: Builder; nodes: OnnxNode[]; tensors: OnnxTensor[] } {
  const nodes: OnnxNode[] = [];
  const tensors: OnnxTensor[] = [];
  const nodeTo: Builder['nodeTo'] = (outputs, op, name, inputs, attributes = {}) => {
    nodes.push({ op, domain: contribOps.has(op) ? 'com.microsoft' : '', name, inputs, outputs, attributes });
  };
  const b: Builder = {
    config,
    options,
    nodeTo,
    node(op, name, inputs, attributes) {
      nodeTo([`${name}/output_0`], op, name, inputs, attributes);
      return `${name}/output_0`;
    },
    constant(tensor) {
      tensors.push(tensor);
      return tensor.name;
    },
  };
  return { b, nodes, tensors };
}
