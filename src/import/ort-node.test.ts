import { expect, test } from 'vitest';
import { nodeClass, nodeLayer } from './ort-node.js';

// Node names of several exporters: Optimum, torch.onnx, the ONNX Runtime GenAI builder, GPT-2's own.
test.each([
  ['/model/layers.3/self_attn/q_proj/MatMul', 3],
  ['/model/layers.21/attn/GroupQueryAttention', 21],
  ['/transformer/h.7/mlp/c_fc/Gemm', 7],
  ['/h.0/attn/MatMul', 0],
  ['/blocks.12/norm/Add', 12],
  ['/model/norm/Mul', null],
  ['/lm_head/MatMul', null],
  ['/model/embed_tokens/Gather', null],
  ['', null],
])('layer of %s is %s', (name, layer) => expect(nodeLayer(name)).toBe(layer));

test.each([
  ['MatMul', '/model/layers.3/self_attn/q_proj/MatMul', 'gemm'],
  ['MatMul', '/model/layers.3/self_attn/MatMul', 'attention'],
  ['MatMul', '/model/layers.3/self_attn/MatMul_1', 'attention'],
  ['MatMul', '/lm_head/MatMul', 'gemm'],
  ['MatMulNBits', '/model/layers.0/mlp/gate_up/MatMulNBits', 'gemm'],
  ['MatMulIntegerToFloat', 'x', 'gemm'],
  ['Gather', '/model/embed_tokens/Gather', 'embedding'],
  ['Gather', '/transformer/wte/Gather', 'embedding'],
  ['Gather', '/model/Gather_3', 'copy'],
  ['Softmax', '/model/layers.0/self_attn/Softmax', 'attention'],
  ['SkipSimplifiedLayerNormalization', 'x', 'norm'],
  ['DynamicQuantizeLinear', 'x', 'quantization'],
  ['Loop', 'x', 'other'],
  ['constructor', 'x', 'other'],
])('class of %s %s is %s', (type, name, opClass) => expect(nodeClass(type, name)).toBe(opClass));
