import type { Builder } from './graph-builder.js';
import type { Attribute } from './onnx-file.js';
import { int4Block, randomInt4, randomLinear, randomVector } from './random-weights.js';

/**
 * accuracy_level of MatMulNBits: the least precise type that the runtime may compute in. With 4 (int8) it may round
 * activations to int8 and multiply integers, in the scheme of its kernels for this CPU; with 1 (float32) it converts
 * weights to float32 on the fly. Exporters choose int8 for CPUs, and the engine uses it: a token of 24 M parameters
 * took 3.1 ms with int8, 8.1 ms with float32 (one Zen 3 core, AVX2) and 7.5 ms unquantized. float32 is for checks.
 */
const accuracyLevel = { int8: 4, float32: 1 } as const;

/** input [.., in] times W, plus bias: `prefix` is the path of the node, `weights` the parameter's name in the checkpoint. */
export function linear(
  b: Builder,
  input: string,
  prefix: string,
  weights: string,
  inputs: number,
  outputs: number,
  bias: boolean,
): string {
  const { dtype, seed } = b.options;
  const name = `${weights}.weight`;
  const gemm =
    dtype === 'int4'
      ? b.node(
          'MatMulNBits',
          `${prefix}/MatMul`,
          [input, ...int4(b, name, name, inputs, outputs)],
          nBits(b, inputs, outputs),
        )
      : b.node('MatMul', `${prefix}/MatMul`, [input, b.constant(randomLinear(name, seed, inputs, outputs))]);
  if (!bias) return gemm;
  return b.node('Add', `${prefix}/Add`, [
    gemm,
    b.constant(randomVector(`${weights}.bias`, seed, outputs, 0, 0.1)),
  ]);
}

/** logits = x · Wᵀ; W is the embedding if tied. In int4 a tied embedding is quantized for this GEMM only. */
export function lmHead(b: Builder, input: string, embedding: string): void {
  const { hiddenSize, vocabSize, tieEmbeddings } = b.config;
  const name = 'lm_head.weight';
  const prefix = '/lm_head/MatMul';
  if (b.options.dtype === 'int4') {
    const weights = int4(b, name, tieEmbeddings ? embedding : name, hiddenSize, vocabSize);
    b.nodeTo(['logits'], 'MatMulNBits', prefix, [input, ...weights], nBits(b, hiddenSize, vocabSize));
  } else if (tieEmbeddings) {
    b.nodeTo(['logits'], 'FusedMatMul', prefix, [input, embedding], { transB: { int: 1 } });
  } else {
    b.nodeTo(['logits'], 'MatMul', prefix, [
      input,
      b.constant(randomLinear(name, b.options.seed, hiddenSize, vocabSize)),
    ]);
  }
}

function int4(b: Builder, name: string, stream: string, inputs: number, outputs: number): [string, string] {
  const { quantized, scales } = randomInt4(name, stream, b.options.seed, outputs, inputs, inputs ** -0.5);
  return [b.constant(quantized), b.constant(scales)];
}

function nBits(b: Builder, inputs: number, outputs: number): Record<string, Attribute> {
  return {
    K: { int: inputs },
    N: { int: outputs },
    bits: { int: 4 },
    block_size: { int: int4Block },
    accuracy_level: { int: accuracyLevel[b.options.computeInt4] },
  };
}
