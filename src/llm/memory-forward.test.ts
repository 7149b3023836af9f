import { describe, expect, it } from 'vitest';
import type { DType } from '../model/dtype.js';
import { readArchitecture } from './read-architecture.js';
import { transformersStep } from './memory-activations.js';
import { withDefaults } from './memory-request.js';
import oracle from './oracle/forward-memory.json' with { type: 'json' };
import { findPreset } from './presets.js';
import { floatStorage } from './storage.js';

/**
 * Relative error allowed for small tensors that are left out: positions, the router's indices and sorting, tables in
 * float32 before they are converted.
 */
const tolerance = 0.01;

describe('peak memory of a step equals that of transformers on the meta device', () => {
  it.each(oracle.rows)('$preset, $attention, $dtype', (row) => {
    const { preset, layers, sequences, prompt } = row;
    const { config } = findPreset(preset)!;
    const key = config['model_type'] === 'gpt2' ? 'n_layer' : 'num_hidden_layers';
    const kinds = config['layer_types'];
    const a = readArchitecture({
      ...config,
      [key]: layers,
      ...(Array.isArray(kinds) ? { layer_types: kinds.slice(0, layers) } : {}),
    });
    const request = withDefaults(a, {
      batchSize: sequences,
      inputLen: prompt,
      outputLen: 4,
      storage: floatStorage(row.dtype as DType),
      attention: row.attention === 'eager' ? 'eager' : 'fused',
    });
    // With nothing counted elsewhere, so the cache is included.
    const step = (cachedTokens: number, newTokens: number) =>
      transformersStep(a, a.layers, request, { cachedTokens, newTokens, kv: 0 }).bytes;
    const expectNear = (bytes: number, expected: number) =>
      expect(Math.abs(bytes / expected - 1), `${bytes} against ${expected}`).toBeLessThan(tolerance);
    expectNear(step(0, prompt), row.prefill_bytes);
    expectNear(step(prompt + 1, 1), row.decode_bytes);
  });
});
