import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readOnnx, weightsOf } from '../../../test/oracle/onnx-weights.js';
import { testFolder } from '../../session/test-folder.js';
import { graphBuilder } from './graph-builder.js';
import { linear } from './linear.js';
import type { LlamaConfig } from './llama-config.js';
import { writeOnnx } from './onnx-file.js';
import { loadOnnxRuntime } from './runtime.js';

const [rows, inputs, outputs] = [16, 176, 96];

/** One int4 GEMM through the runtime, and the same in float64 with its dequantized weights. */
async function multiplyInt4(computeInt4: 'int8' | 'float32') {
  const options = { dtype: 'int4', seed: 3, logits: 'all', computeInt4 } as const;
  const { b, nodes, tensors } = graphBuilder({} as LlamaConfig, options);
  const y = linear(b, 'x', '/layer', 'layer', inputs, outputs, false);
  const folder = testFolder();
  await writeOnnx(folder, 'model.onnx', {
    name: 'gemm',
    nodes,
    tensors,
    inputs: [{ name: 'x', type: 'float32', shape: [rows, inputs] }],
    outputs: [{ name: y, type: 'float32', shape: [rows, outputs] }],
    metadata: {},
  });
  const path = join(folder, 'model.onnx');
  // Activations like those of a gated MLP: most small, some large.
  const x = Float32Array.from(
    { length: rows * inputs },
    (_, i) => Math.sin(i * 1.7) * Math.sin(i * 0.31) ** 3,
  );
  const ort = await loadOnnxRuntime();
  const session = await ort.InferenceSession.create(path, { executionProviders: ['cpu'] });
  const results = await session.run({ x: new ort.Tensor('float32', x, [rows, inputs]) });
  await session.release();
  const actual = results[y]!.data as Float32Array;
  const weights = weightsOf(readOnnx(path).tensors).matrix('layer.weight');
  return Array.from({ length: rows }, (_, row) => {
    const a = x.subarray(row * inputs, (row + 1) * inputs);
    const largest = a.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    return weights.map((w, column) => {
      const terms = Array.from(a, (value, k) => value * w[k]!);
      const exact = terms.reduce((sum, term) => sum + term, 0);
      return {
        error: Math.abs(actual[row * outputs + column]! - exact),
        /** Σ|w·a| and Σ|w|, Σw² */
        magnitude: terms.reduce((sum, term) => sum + Math.abs(term), 0),
        weight: w.reduce((sum, value) => sum + Math.abs(value), 0),
        weightSquares: w.reduce((sum, value) => sum + value * value, 0),
        largest,
      };
    });
  }).flat();
}

describe('int4 GEMMs', () => {
  it('in float32 equal those of the dequantized weights, up to the rounding of float32 sums', async () => {
    // n·u·Σ|w·a|: n = 176 terms, u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); two more for w.
    for (const { error, magnitude } of await multiplyInt4('float32'))
      expect(error).toBeLessThan((inputs + 2) * 2 ** -24 * magnitude);
  });

  /**
   * accuracy_level 4 permits int8 but specifies no scheme. ONNX Runtime's kernels differ by CPU: blocks of 32 with
   * steps of max|a|/127 (AVX2, AVX-512, VNNI), whole rows with (max − min)/255 and a rounded zero point (KleidiAI on
   * arm64), scales as bfloat16 there, or float32 if neither is built in. No step is larger than the row's max|a|/127. A
   * value moves by half a step, or by one if the zero point was rounded.
   */
  it('in int8 differ by at most the coarsest int8 rounding of activations', async () => {
    const elements = await multiplyInt4('int8');
    for (const { error, magnitude, weight, largest } of elements)
      expect(error).toBeLessThan((largest / 127) * weight + 2 ** -8 * magnitude);
    // Independent roundings add as squares: step²/12 per term. Twice that covers a zero point and bfloat16 scales too.
    const squares = elements.map(
      ({ error, weightSquares, largest }) => error ** 2 / (((largest / 127) ** 2 * weightSquares) / 12),
    );
    expect(squares.reduce((sum, square) => sum + square, 0) / squares.length).toBeLessThan(2);
  });
});
