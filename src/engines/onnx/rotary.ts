import { configError } from '../../llm/config-fields.js';
import { unsupported } from './model-errors.js';
import type { OnnxTensor } from './onnx-file.js';

/** Rotary frequencies and their scaling. */
export interface Rope {
  theta: number;
  scaling:
    | { type: 'default' }
    | { type: 'linear'; factor: number }
    | {
        type: 'llama3';
        factor: number;
        lowFreqFactor: number;
        highFreqFactor: number;
        originalMaxPositions: number;
      };
}

/**
 * transformers 5 writes `rope_parameters`, earlier versions `rope_theta` and `rope_scaling`.
 * @throws E_MODEL_CONFIG for a missing factor, E_MODEL_ARCHITECTURE for an unsupported kind of scaling
 */
export function readRope(config: Record<string, unknown>): Rope {
  const nested = config['rope_parameters'] ?? config['rope_scaling'] ?? {};
  const parameters: Record<string, unknown> = typeof nested === 'object' ? { ...nested } : {};
  const positive = (key: string, value: unknown): number => {
    if (typeof value === 'number' && value > 0) return value;
    throw configError(key, value, 'It must be a positive number.');
  };
  const theta = positive('rope_theta', parameters['rope_theta'] ?? config['rope_theta'] ?? 10_000);
  const number = (key: string) => positive(key, parameters[key]);
  const type = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  if (type === 'default') return { theta, scaling: { type } };
  if (type === 'linear') return { theta, scaling: { type, factor: number('factor') } };
  if (type !== 'llama3') {
    throw unsupported(
      `rotary embedding is of type ${JSON.stringify(type)}`,
      'it writes default, linear and llama3 rotary tables',
    );
  }
  return {
    theta,
    scaling: {
      type,
      factor: number('factor'),
      lowFreqFactor: number('low_freq_factor'),
      highFreqFactor: number('high_freq_factor'),
      originalMaxPositions: number('original_max_position_embeddings'),
    },
  };
}

/**
 * Inverse frequencies of the rotary embedding, one per pair of dimensions: θ^(−2i/d), RoFormer (arXiv 2104.09864).
 * `linear` divides all by the factor; `llama3` divides long wavelengths, keeps short ones and interpolates between
 * (Llama 3.1 reference code, also transformers' modeling_rope_utils).
 */
function inverseFrequencies(rope: Rope, headDim: number): number[] {
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
export function rotaryTables(
  rope: Rope,
  headDim: number,
  maxPositions: number,
): { cos: OnnxTensor; sin: OnnxTensor } {
  const frequencies = inverseFrequencies(rope, headDim);
  const table = (name: string, valueAt: (angle: number) => number): OnnxTensor => ({
    name,
    type: 'float32',
    shape: [maxPositions, frequencies.length],
    *chunks() {
      const rowsAtOnce = Math.min(maxPositions, 4096);
      const buffer = new Float32Array(rowsAtOnce * frequencies.length);
      for (let from = 0; from < maxPositions; from += rowsAtOnce) {
        const rows = Math.min(rowsAtOnce, maxPositions - from);
        let index = 0;
        for (let row = from; row < from + rows; row++) {
          for (const frequency of frequencies) buffer[index++] = valueAt(row * frequency);
        }
        yield new Uint8Array(buffer.buffer, 0, index * 4);
      }
    },
  });
  return { cos: table('rotary.cos', Math.cos), sin: table('rotary.sin', Math.sin) };
}
