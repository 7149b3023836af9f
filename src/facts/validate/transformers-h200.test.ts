import { describe, expect, it } from 'vitest';
import { profileFieldsSchema } from './profile-fields.js';
import { validateOne, names, readProfile } from './test-profiles.js';
import { toleranceOf, validateProfiles } from './validate.js';

describe('an H200, six shapes from 0.5 B to 14 B, MHA, GQA and MoE, in three dtypes', () => {
  const validation = validateProfiles(
    names.map((name) => ({ source: name, profile: readProfile(name) })),
    toleranceOf(0.05),
  );

  it.each(names)('%s: total within 5 %, each component within 10 % or 64 MiB', (name) => {
    const row = validation.profiles.find(({ source }) => source === name)!;
    expect(row.status).toBe('compared');
    expect(Math.abs(row.total!.error_share!)).toBeLessThan(0.05);
    expect(row.components.length).toBeGreaterThanOrEqual(6);
    for (const { component, error_bytes, measured_bytes } of row.components) {
      const maxError = Math.max(0.1 * measured_bytes, 64 * 2 ** 20);
      expect(Math.abs(error_bytes), component).toBeLessThanOrEqual(maxError);
    }
  });

  it('summarizes by component, family, dtype and tensor parallelism, and recommends nothing', () => {
    expect(validation.result).toBe('passed');
    expect(validation.counts).toEqual({ compared: 6, rejected: 0, skipped: 0, within_tolerance: 6 });
    const weights = validation.components.find(({ component }) => component === 'model_weights')!;
    expect(weights).toMatchObject({ profiles: 6, worst_share: 0, within_tolerance: 6 });
    const values = validation.groups.map(
      ({ dimension, value, profiles }) => `${dimension} ${value}: ${profiles}`,
    );
    expect(values).toContain('family Qwen2: 3');
    expect(values).toContain('dtype bfloat16: 3');
    expect(values).toContain('tensor_parallel_size 1: 6');
    expect(validation.recommendations).toEqual([]);
    expect(validation.total_by_fit).toMatchObject({ fitted: { profiles: 6 }, others: { profiles: 0 } });
  });
});

it.each([
  'gpt2-xl-float16',
  'opt-6.7b-float16',
  'phi-2-float16',
  'gemma-2-9b-bfloat16',
  'gemma-3-4b-bfloat16',
  'mistral-7b-float16-eager',
  'llama-3.2-1b-bfloat16',
  'deepseek-v2-lite-bfloat16',
])(
  'held-out/%s, which no constant was fitted to (except context growth of llama-3.2-1b): total within 0.2 %, every component within 64 MiB',
  (name) => {
    const [row] = validateOne(readProfile(`held-out/${name}`)).profiles;
    expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.002);
    const errors = new Map(row!.components.map((component) => [component.component, component.error_bytes]));
    expect([errors.get('model_weights'), errors.get('kv_cache')]).toEqual([0, 0]);
    // Tensors of a few KiB are omitted from the allocation order that determines activations and reserve.
    expect(Math.abs(errors.get('activations')!)).toBeLessThan(3e6);
    expect(Math.abs(errors.get('allocator_reserve')!)).toBeLessThan(20 * 2 ** 20);
    // Attention memory is computed for float32 and others, for 16 and 512 tokens.
    expect(Math.abs(errors.get('cuda_context')!)).toBeLessThan(2 ** 20);
    for (const bytes of errors.values()) expect(Math.abs(bytes)).toBeLessThan(64 * 2 ** 20);
  },
);

it('reports errors of runs used for fitting separately', () => {
  const runs = ['llama-2-7b-float16', 'held-out/phi-2-float16', 'held-out/gemma-3-4b-bfloat16'];
  const validation = validateProfiles(
    runs.map((source) => ({ source, profile: readProfile(source) })),
    toleranceOf(0.05),
  );
  expect(validation.profiles.filter(({ fitted }) => fitted).map(({ model }) => model)).toEqual([
    'llama-2-7b',
  ]);
  expect(validation.total_by_fit).toMatchObject({ fitted: { profiles: 1 }, others: { profiles: 2 } });
  expect(validateOne(readProfile('held-out/phi-2-float16')).total_by_fit).toBeNull();
});

it('held-out/qwen3-4b-bfloat16-graph: a captured decode step, not used for fitting', () => {
  const [row] = validateOne(readProfile('held-out/qwen3-4b-bfloat16-graph')).profiles;
  const graphs = row!.components.find(({ component }) => component === 'cuda_graphs')!;
  // 32 MiB of cuBLAS, 2 × 36 MiB of repeated keys and values, one segment of small tensors.
  expect(graphs).toMatchObject({ estimated_bytes: 106 * 2 ** 20, error_bytes: 0 });
  expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.015);
});

it.each(['two-gpus/llama-3.1-8b-bfloat16', 'two-gpus/qwen2.5-14b-bfloat16'])(
  '%s, divided by tp_plan over two H200s: total within 5 %, weights and cache to the byte',
  (name) => {
    const [row] = validateOne(readProfile(name)).profiles;
    expect(row).toMatchObject({ status: 'compared', tensor_parallel_size: 2 });
    expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.02);
    const error = (component: string) =>
      row!.components.find((candidate) => candidate.component === component)!.error_bytes;
    expect([error('model_weights'), error('kv_cache')]).toEqual([0, 0]);
    expect(Math.abs(error('activations'))).toBeLessThan(2 * 2 ** 20);
    for (const component of ['framework_overhead', 'cuda_context']) {
      expect(Math.abs(error(component)), component).toBeLessThan(64 * 2 ** 20);
    }
    // One of two Llama runs reserved 114 MiB more per GPU than the other: the allocator's segments vary between runs.
    expect(Math.abs(error('allocator_reserve')) / 2).toBeLessThan(128 * 2 ** 20);
  },
);

it('a profile of another tool with only names and _gb figures', () => {
  const [row] = validateOne(
    profileFieldsSchema.parse({
      schema_version: '2.0',
      metadata: { config: { input_len: 512, output_len: 48, batch_size: 4, dtype: 'float16' } },
      model_info: { name: 'meta-llama/Llama-2-7b-hf' },
      memory_measurements: { baseline: { total_gb: 0 }, peak: { total_gb: 16.388 } },
      memory_breakdown: { model_weights_gb: 13.477, kv_cache_gb: 1.3, activations_gb: 0.2 },
      engine_metadata: { engine_type: 'transformers' },
    }),
  ).profiles;
  expect(row!.components.map(({ component, within_tolerance }) => [component, within_tolerance])).toEqual([
    ['model_weights', true],
    ['kv_cache', false],
    ['activations', true],
  ]);
  // The GPU is unknown: context and workspace differ from an H200's.
  expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.05);
});
