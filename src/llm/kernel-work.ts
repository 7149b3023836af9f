import { bytesPerElement, type DType } from '../model/dtype.js';
import type { KernelCase, KernelName } from '../model/kernels.js';
import { attendedKeys } from './shape.js';

type Params = Readonly<Record<string, number>>;

/** Work of one run of a kernel. */
interface KernelWork {
  flops: number;
  bytes: number;
  /** Inputs, lookup tables and outputs: the minimum memory of one set of arrays. */
  footprintBytes: number;
}

interface Elements {
  flops: number;
  /** Elements of the case's dtype that are each read or written once. */
  inputs: number;
  outputs: number;
  /** Bytes of another type: token ids are int64. */
  otherBytes?: number;
  /** Elements of the inputs in memory, if a kernel does not read each of them once. */
  held?: number;
}

const param = (params: Params, name: string): number => {
  const value = params[name];
  if (value === undefined) throw new Error(`a kernel needs ${name}: ${JSON.stringify(params)}`);
  return value;
};

/**
 * FLOPs and elements by kernel. Kernels with matrix multiplications count only these, 2 per multiply-add, like MFU
 * (docs/concepts/llm-arithmetic.md), without biases and gate activations. The other kernels count every addition,
 * multiplication, division, comparison, exponential, root and error function as one, which gives them a position on the
 * roofline far below the ridge.
 */
const elementsOf: Record<KernelName, (params: Params) => Elements> = {
  /** out[m, n] = a[m, k] · b[k, n]: 2·m·n·k. */
  gemm: (params) => gemmElements(param(params, 'm'), param(params, 'n'), param(params, 'k'), 0),
  /** Like gemm, with a bias of `out_features`. */
  linear: (params) =>
    gemmElements(
      param(params, 'tokens'),
      param(params, 'out_features'),
      param(params, 'in_features'),
      param(params, 'bias') * param(params, 'out_features'),
    ),
  /** Stride 1, padding ⌊kernel/2⌋, no bias: 2·B·Cout·H′·W′·Cin·k² (Goodfellow et al., Deep Learning, 9.1). */
  conv2d: (params) => {
    const [b, cin, cout, k] = [
      param(params, 'batch'),
      param(params, 'channels'),
      param(params, 'out_channels'),
      param(params, 'kernel'),
    ];
    const pixels = convSide(param(params, 'height'), k) * convSide(param(params, 'width'), k);
    return {
      flops: 2 * b * cout * pixels * cin * k * k,
      inputs: b * cin * param(params, 'height') * param(params, 'width') + cout * cin * k * k,
      outputs: b * cout * pixels,
    };
  },
  /**
   * Four gates, each with an input and a recurrent GEMM per step: Σ layers 2·B·S·4H·(in + H) (Hochreiter & Schmidhuber
   * 1997; torch.nn.LSTM). Two biases per gate; reads the sequence, writes the last layer's outputs and all last states.
   */
  lstm: (params) => {
    const [b, s, i, h, l] = [
      param(params, 'batch'),
      param(params, 'seq'),
      param(params, 'input'),
      param(params, 'hidden'),
      param(params, 'layers'),
    ];
    const matrices = 4 * h * (i + h) + (l - 1) * 4 * h * 2 * h;
    return {
      flops: 2 * b * s * matrices,
      inputs: b * s * i + matrices + l * 8 * h,
      outputs: b * s * h + 2 * l * b * h,
    };
  },
  /**
   * Per element: LayerNorm 7 (mean, center, square, sum, × 1/σ, weight, bias) and exact GELU 5 (/√2, erf, + 1, × x, ×
   * ½).
   */
  'layernorm-gelu': (params) => {
    const [t, h] = [param(params, 'tokens'), param(params, 'hidden')];
    return { flops: 12 * t * h, inputs: t * h + 2 * h, outputs: t * h };
  },
  /**
   * Causal: 4·heads·head_dim per query and visible key, docs/concepts/llm-arithmetic.md; keys and values of the context
   * are read once.
   */
  attention: (params) => {
    const [b, h, kv, d] = [
      param(params, 'batch'),
      param(params, 'heads'),
      param(params, 'kv_heads'),
      param(params, 'head_dim'),
    ];
    const [t, c] = [param(params, 'new_tokens'), param(params, 'context')];
    const pairs = attendedKeys(
      { phase: 'prefill', batchSize: b, newTokens: t, contextTokens: Math.max(0, c - t) },
      c,
    );
    return {
      flops: 4 * h * d * b * pairs,
      inputs: b * t * h * d + 2 * b * Math.max(c, t) * kv * d,
      outputs: b * t * h * d,
    };
  },
  /** Per element 5: maximum, subtract, exp, sum, divide. */
  softmax: (params) => {
    const n = param(params, 'rows') * param(params, 'columns');
    return { flops: 5 * n, inputs: n, outputs: n };
  },
  /**
   * Per element 4: square, sum, × 1/rms, × weight. With a residual one addition more, and its result is written too.
   */
  rmsnorm: (params) => {
    const [t, h, residual] = [param(params, 'tokens'), param(params, 'hidden'), param(params, 'residual')];
    const n = t * h;
    return { flops: (4 + residual) * n, inputs: n * (1 + residual) + h, outputs: n * (1 + residual) };
  },
  /** Per element 4: exp, + 1, divide, × up, for gate · sigmoid(gate) · up (Shazeer 2020, arXiv 2002.05202). */
  swiglu: (params) => {
    const n = param(params, 'tokens') * param(params, 'intermediate');
    return { flops: 4 * n, inputs: 2 * n, outputs: n };
  },
  /** Per element two products and a sum (RoFormer, arXiv 2104.09864); the tables of cos and sin stay in the caches. */
  rope: (params) => {
    const n =
      param(params, 'tokens') *
      (param(params, 'heads') + param(params, 'kv_heads')) *
      param(params, 'head_dim');
    return { flops: 3 * n, inputs: n, outputs: n };
  },
  /** No FLOPs: one row of the table per token. */
  embedding: (params) => {
    const n = param(params, 'tokens') * param(params, 'hidden');
    return {
      flops: 0,
      inputs: n,
      outputs: n,
      otherBytes: 8 * param(params, 'tokens'),
      held: param(params, 'vocab') * param(params, 'hidden'),
    };
  },
  /** argmax: one comparison per logit; writes a token id (8 bytes). */
  sampling: (params) => {
    const n = param(params, 'batch') * param(params, 'vocab');
    return { flops: n, inputs: n, outputs: 0, otherBytes: 8 * param(params, 'batch') };
  },
};

const matrixKernels: readonly KernelName[] = ['gemm', 'linear', 'conv2d', 'lstm', 'attention'];

/** Whether its FLOPs are matrix multiplications, so that the dtype's matrix peak is the roof. */
export const isMatrixKernel = (kernel: string): boolean =>
  (matrixKernels as readonly string[]).includes(kernel);

function gemmElements(m: number, n: number, k: number, bias: number): Elements {
  return { flops: 2 * m * n * k, inputs: m * k + k * n + bias, outputs: m * n };
}

/** Height or width of a convolution's output. */
export function convSide(side: number, kernel: number): number {
  return side + 2 * Math.floor(kernel / 2) - kernel + 1;
}

/** tfloat32 is float32 in memory. */
function elementBytes(dtype: string): number {
  return dtype === 'tfloat32' ? 4 : bytesPerElement[dtype as DType];
}

/** GEMMs of 8 bits have wider results: float8 bfloat16 (torch._scaled_mm), int8 int32 (torch._int_mm). */
function outputBytes(dtype: string): number {
  if (dtype === 'float8') return 2;
  return dtype === 'int8' ? 4 : elementBytes(dtype);
}

/** Minimum work of one run: every input read once, every output written once. */
export function kernelWork(kernel: KernelName, dtype: string, params: Params): KernelWork {
  const { flops, inputs, outputs, otherBytes = 0, held = inputs } = elementsOf[kernel](params);
  const bytes = inputs * elementBytes(dtype) + outputs * outputBytes(dtype) + otherBytes;
  return { flops, bytes, footprintBytes: bytes + (held - inputs) * elementBytes(dtype) };
}

/** A case with its id, FLOPs and bytes: "attention bfloat16 8x32x8x128x1x2048 flash". */
export function kernelCase(
  kernel: KernelName,
  dtype: string,
  params: Record<string, number>,
  backend: string | null = null,
): KernelCase {
  const { flops, bytes } = kernelWork(kernel, dtype, params);
  const words = [kernel, dtype, Object.values(params).join('x'), ...(backend === null ? [] : [backend])];
  return { case: words.join(' '), kernel, backend, dtype, params, flops, bytes };
}
