import { describe, expect, it } from 'vitest';
import { peakLiveActivations } from './activations.js';
import { layerTable } from './layers.js';
import { countParameters } from './parameters.js';
import { presetArchitecture, presets } from './presets.js';
import type { StageShape } from './shape.js';
import { floatStorage } from './storage.js';
import { stageWork } from './work.js';
import { totalWork } from './work-totals.js';

const bf16 = floatStorage('bfloat16');
const prefill: StageShape = { phase: 'prefill', batchSize: 2, newTokens: 100, contextTokens: 0 };
const decode: StageShape = { phase: 'decode', batchSize: 4, newTokens: 1, contextTokens: 300 };

describe('layerTable', () => {
  it.each(presets.map(({ id }) => id))('%s: parameters, FLOPs and bytes add up, in both phases', (id) => {
    const a = presetArchitecture(id);
    for (const shape of [prefill, decode]) {
      const table = layerTable(a, shape, bf16);
      const work = totalWork(stageWork(a, shape, bf16));
      expect(table.total.parameters).toBe(countParameters(a).total);
      expect(table.total.flops).toBe(work.flops);
      expect(table.total.bytes).toBe(work.bytes_total);
      const parts = [...table.outside, ...table.groups.map(({ total }) => total)];
      expect(parts.reduce((n, p) => n + p.parameters, 0)).toBe(table.total.parameters);
      expect(table.groups.flatMap(({ layers }) => layers)).toHaveLength(a.layers.length);
    }
  });

  it('gives a layer of TinyLlama by hand', () => {
    const { rows, groups } = layerTable(presetArchitecture('tinyllama-1.1b'), prefill, bf16);
    const tokens = 200;
    expect(rows.find((r) => r.layer === 3 && r.module === 'gate_up_proj')).toEqual({
      module: 'gate_up_proj',
      class: 'gemm',
      dtype: 'bfloat16',
      layer: 3,
      parameters: 2 * 2048 * 5632,
      flops: 2 * tokens * 2 * 2048 * 5632,
      weight_bytes: 2 * 2 * 2048 * 5632,
      kv_read_bytes: 0,
      kv_write_bytes: 0,
      activation_in_bytes: tokens * 2048 * 2,
      activation_out_bytes: tokens * 2 * 5632 * 2,
      bytes: 2 * 2 * 2048 * 5632 + tokens * 2048 * 2 + tokens * 2 * 5632 * 2,
    });
    expect(groups.map(({ structure }) => structure)).toEqual([
      'attention 32 heads × 64, 4 KV heads; MLP 5632',
    ]);
  });

  it('groups layers of one structure', () => {
    const groups = (id: string): number[] =>
      layerTable(presetArchitecture(id), decode, bf16).groups.map(({ layers }) => layers.length);
    expect(groups('deepseek-v3')).toEqual([3, 58]);
    expect(groups('gemma-3-27b')).toEqual([52, 10]);
    expect(groups('opt-350m')).toEqual([24]);
  });
});

describe('activations', () => {
  const a = presetArchitecture('tinyllama-1.1b'); // D 2048, I 5632, H 32, V 32000

  it('peak at the gated MLP when attention is fused', () => {
    const peak = peakLiveActivations(a, prefill, { activations: 'float32' });
    // Residual D, then SwiGLU: 2·I in, I out, 200 tokens of 4 bytes.
    expect(peak).toMatchObject({
      bytes: 200 * (2048 + 3 * 5632) * 4,
      operation: 'layers.0.swiglu',
      confidence: 'low',
    });
  });

  it('peak at the scores when they are stored', () => {
    const long: StageShape = { ...prefill, batchSize: 1, newTokens: 2000 };
    const peak = peakLiveActivations(a, long, { activations: 'float32', scoreBytes: 4 });
    // Residual, q + k + v, output, and 32 · 2000 · 2000 scores.
    const elements = 2000 * (2048 + (2048 + 512) + 2048) + 32 * 2000 * 2000;
    expect(peak).toMatchObject({ bytes: elements * 4, operation: 'layers.0.attention' });
  });
});
