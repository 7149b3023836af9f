import type { LlamaConfig, Rope } from './llama-config.js';
import type { OnnxTensor } from './onnx-file.js';

/**
 * Inverse frequencies of the rotary embedding, one a pair of dimensions: θ^(−2i/d), RoFormer (arXiv 2104.09864).
 * `linear` divides all by the factor; `llama3` divides the long wavelengths, keeps the short ones and blends between
 * (Llama 3.1 reference code, also transformers' modeling_rope_utils).
 */
export function inverseFrequencies(rope: Rope, headDim: number): number[] {
  const { scaling, theta } = rope;
  return Array.from({ length: headDim / 2 }, (_, pair) => {
    const frequency = theta ** ((-2 * pair) / headDim);
    if (scaling.type === 'default') return frequency;
    if (scaling.type === 'linear') return frequency / scaling.factor;
    const wavelength = (2 * Math.PI) / frequency;
    const longest = scaling.originalMaxPositions / scaling.lowFreqFactor;
    const shortest = scaling.originalMaxPositions / scaling.highFreqFactor;
    if (wavelength < shortest) return frequency;
    if (wavelength > longest) return frequency / scaling.factor;
    const blend =
      (scaling.originalMaxPositions / wavelength - scaling.lowFreqFactor) /
      (scaling.highFreqFactor - scaling.lowFreqFactor);
    return (1 - blend) * (frequency / scaling.factor) + blend * frequency;
  });
}

/** cos and sin of position × frequency, [maxPositions, headDim/2] each, computed in float64. */
export function rotaryTables(config: LlamaConfig): { cos: OnnxTensor; sin: OnnxTensor } {
  const frequencies = inverseFrequencies(config.rope, config.headDim);
  const table = (name: string, of: (angle: number) => number): OnnxTensor => ({
    name,
    type: 'float32',
    shape: [config.maxPositions, frequencies.length],
    *chunks() {
      const rowsAtOnce = Math.min(config.maxPositions, 4096);
      const buffer = new Float32Array(rowsAtOnce * frequencies.length);
      for (let from = 0; from < config.maxPositions; from += rowsAtOnce) {
        const rows = Math.min(rowsAtOnce, config.maxPositions - from);
        let at = 0;
        for (let row = from; row < from + rows; row++) {
          for (const frequency of frequencies) buffer[at++] = of(row * frequency);
        }
        yield new Uint8Array(buffer.buffer, 0, at * 4);
      }
    },
  });
  return { cos: table('rotary.cos', Math.cos), sin: table('rotary.sin', Math.sin) };
}
