import type { OpClass } from '../model/classes.js';

/** Operator type of ONNX Runtime's trace -> class. Types not listed are "other". */
const classOf: Record<string, OpClass> = {
  MatMul: 'gemm',
  FusedMatMul: 'gemm',
  Gemm: 'gemm',
  FusedGemm: 'gemm',
  MatMulNBits: 'gemm',
  MatMulInteger: 'gemm',
  MatMulIntegerToFloat: 'gemm',
  DynamicQuantizeMatMul: 'gemm',
  QLinearMatMul: 'gemm',
  GroupQueryAttention: 'attention',
  MultiHeadAttention: 'attention',
  Attention: 'attention',
  Softmax: 'attention',
  SimplifiedLayerNormalization: 'norm',
  SkipSimplifiedLayerNormalization: 'norm',
  LayerNormalization: 'norm',
  SkipLayerNormalization: 'norm',
  RMSNormalization: 'norm',
  ReduceMean: 'norm',
  Pow: 'norm',
  Sqrt: 'norm',
  Reciprocal: 'norm',
  RotaryEmbedding: 'elementwise',
  QuickGelu: 'elementwise',
  Gelu: 'elementwise',
  FastGelu: 'elementwise',
  BiasGelu: 'elementwise',
  Sigmoid: 'elementwise',
  Tanh: 'elementwise',
  Relu: 'elementwise',
  Mul: 'elementwise',
  Add: 'elementwise',
  Sub: 'elementwise',
  Div: 'elementwise',
  Neg: 'elementwise',
  Cos: 'elementwise',
  Sin: 'elementwise',
  Where: 'elementwise',
  Gather: 'embedding',
  GatherBlockQuantized: 'embedding',
  DynamicQuantizeLinear: 'quantization',
  QuantizeLinear: 'quantization',
  DequantizeLinear: 'quantization',
  Transpose: 'copy',
  Reshape: 'copy',
  Concat: 'copy',
  Slice: 'copy',
  Split: 'copy',
  Expand: 'copy',
  Tile: 'copy',
  Squeeze: 'copy',
  Unsqueeze: 'copy',
  Cast: 'copy',
  Shape: 'copy',
  Range: 'copy',
  ConstantOfShape: 'copy',
  ArgMax: 'sampling',
  TopK: 'sampling',
};

/**
 * Class of a node. A MatMul between activations inside attention (scores, values) is attention; a Gather that picks
 * positions or shapes rather than embedding rows is a copy.
 */
export function nodeClass(opType: string, name: string): OpClass {
  if (/MatMul|Gemm/.test(opType) && /\/(self_attn|attn|attention)\/(MatMul(_\d+)?)$/.test(name))
    return 'attention';
  if (opType === 'Gather' && !/embed|wte/i.test(name)) return 'copy';
  return Object.hasOwn(classOf, opType) ? classOf[opType]! : 'other';
}

/** /model/layers.3/self_attn/q_proj/MatMul -> 3; also `/h.3/`, `/block.3/`, as in other exporters. */
export function nodeLayer(name: string): number | null {
  const match = /(?:^|[/.])(?:layers?|h|blocks?)[./](\d+)(?=[/.])/.exec(name);
  return match ? Number(match[1]) : null;
}
