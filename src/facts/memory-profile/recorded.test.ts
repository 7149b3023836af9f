import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../model/installation.js';
import type { MemoryResult } from '../../model/documents/memory-result.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { analyzeMemory } from './memory.js';

/** Sessions of an H200 (see their ORIGIN.md). The expected values follow from the models' dimensions. */
async function analyzeFixture(name: string): Promise<MemoryResult> {
  const home = testHome();
  const path = join(packageRoot(), 'test', 'fixtures', 'memory-torch2.11-h200', `${name}.tgz`);
  const { id } = await importSession(path, home);
  return (await analyzeMemory(await openSession(id, home))).data;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const componentsOf = ({ profile }: MemoryResult) =>
  Object.fromEntries(
    profile.memory_breakdown.components.map((component) => [component.component, component]),
  );

// Published parameter counts; KV heads × head_dim and layers from config.json, 2 bytes each.
describe.each([
  { name: 'llama-2-7b', parameters: 6_738_415_616, kv: 2 * 32 * 32 * 128, batch: 4, input: 512, output: 48 },
  {
    name: 'qwen1.5-moe-a2.7b',
    parameters: 14_315_784_192,
    kv: 2 * 24 * 16 * 128,
    batch: 4,
    input: 512,
    output: 24,
  },
])('$name', ({ name, parameters, kv, batch, input, output }) => {
  let result: MemoryResult;
  beforeAll(async () => {
    result = await analyzeFixture(name);
  });

  test('weights equal the parameters, and the KV cache its tokens, to the byte', () => {
    const { model_weights, kv_cache } = componentsOf(result);
    expect(result.profile.model_info.num_parameters).toBe(parameters);
    expect(model_weights).toMatchObject({ bytes: 2 * parameters, confidence: 'high' });
    expect(result.profile.memory_breakdown['peak_stage']).toBe('prefill');
    expect(kv_cache).toMatchObject({ bytes: batch * input * kv * 2, confidence: 'high' });
    // At the end of decode, without the last token, which is not fed back.
    const end = result.allocator.find(({ stage }) => stage === 'decode');
    expect(end?.kv_cache_bytes).toBe(batch * (input + output - 1) * kv * 2);
  });

  test("components and residual sum to the driver's count", () => {
    const { memory_breakdown, memory_measurements } = result.profile;
    const { components, total_measured_bytes } = memory_breakdown;
    expect(sum(components.map(({ bytes }) => bytes))).toBe(total_measured_bytes);
    expect(total_measured_bytes).toBe(memory_measurements.memory_increase_bytes);
    expect(Math.abs(memory_breakdown.residual_bytes!)).toBeLessThan(4 * 2 ** 20);
    // An idle torch 2.11 process uses this much on this GPU outside its allocator.
    expect(componentsOf(result)['cuda_context']!.bytes).toBeGreaterThan(690 * 2 ** 20);
    expect(componentsOf(result)['cuda_context']!.bytes).toBeLessThan(705 * 2 ** 20);
    // cuBLAS workspace on compute capability 9.0: 4096 KiB × 8.
    const workspace = componentsOf(result)['framework_overhead']!.bytes / 2 ** 20;
    expect(workspace).toBeGreaterThanOrEqual(32);
    expect(workspace).toBeLessThan(33.5);
  });

  test('the calculator is within 10 % or 64 MiB of weights, KV cache and activations', () => {
    for (const component of ['model_weights', 'kv_cache', 'activations'] as const) {
      const { bytes, estimate_bytes } = componentsOf(result)[component]!;
      expect(Math.abs(bytes - estimate_bytes!)).toBeLessThan(Math.max(0.1 * bytes, 64 * 2 ** 20));
    }
  });

  test('reports points, timeline and latency', () => {
    const { memory_measurements, latency_stats, metadata, missing } = result.profile;
    const { baseline, post_warmup, peak } = memory_measurements;
    expect(baseline.total_gb).toBeLessThan(0.01);
    expect(post_warmup.t_s).toBeLessThan(peak.t_s!);
    expect(peak.per_gpu_details).toMatchObject([{ gpu: 0, name: 'NVIDIA H200' }]);
    expect(latency_stats.tokens_per_second).toBeCloseTo(
      (batch * output) / (latency_stats.mean_latency_ms! / 1000),
      6,
    );
    expect([metadata.status, missing]).toEqual(['measured', {}]);
    expect(result.timeline.phases.map(({ label }) => label)).toEqual(['load', 'warm-up', 'timed']);
    expect(result.timeline.marks.map(({ point }) => point)).toEqual(['baseline', 'post_warmup', 'peak']);
    const used = result.timeline.series.find(({ kind }) => kind === 'used')!;
    // From before the process started until after it exited.
    expect(used.points[0]!.bytes).toBe(baseline.total_bytes);
    expect(used.points.at(-1)!.bytes).toBeLessThan(0.1 * peak.total_bytes!);
  });
});

test('out of memory in warm-up: the failed attempt is the peak, and all samples are kept', async () => {
  const { profile, session, allocator, timeline } = await analyzeFixture('llama-3.1-8b-out-of-memory');
  expect([profile.metadata.status, session.status]).toEqual(['partial', 'failed']);
  const { components, total_measured_bytes } = profile.memory_breakdown;
  expect(sum(components.map(({ bytes }) => bytes))).toBe(total_measured_bytes);
  // 8,030,261,248 parameters in float32.
  expect(components.find(({ component }) => component === 'model_weights')?.bytes).toBe(4 * 8_030_261_248);
  expect(total_measured_bytes).toBeGreaterThan(100e9);
  expect(profile.memory_breakdown['peak_stage']).toBe('failed');
  expect(profile.metadata.issues.map(({ code }) => code)).toContain('ended_early');
  expect(profile.missing['latency_stats']).toContain('out of memory');
  // The engine records the moment after the failed attempt, too; warm-up did not end.
  const { post_warmup, warmup_increase_bytes, growth_bytes } = profile.memory_measurements;
  expect([post_warmup.total_bytes, post_warmup.t_s, warmup_increase_bytes, growth_bytes]).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect(profile.missing['memory_measurements.post_warmup']).toContain('out of memory in warm-up');
  expect(timeline.marks.map(({ point }) => point)).toEqual(['baseline', 'peak']);
  expect(allocator.map(({ stage }) => stage)).not.toContain('post_warmup');
});

test("two GPUs: transformers' plan divides the KV cache and all weights except embedding and norms", async () => {
  const result = await analyzeFixture('llama-3.1-8b-two-gpus');
  const { memory_breakdown, memory_measurements, model_info, metadata } = result.profile;
  const { model_weights, kv_cache } = componentsOf(result);
  const repeated = 128_256 * 4096 + (2 * 32 + 1) * 4096;
  expect(model_weights!.bytes).toBe(2 * (8_030_261_248 + repeated));
  expect(kv_cache!.bytes).toBe(8 * 1024 * 2 * 32 * 8 * 128 * 2);
  expect(model_info.tensor_parallel_size).toBe(2);
  expect(metadata.gpus.map(({ gpu }) => gpu)).toEqual([0, 1]);
  const { peak } = memory_measurements;
  const [first, second] = peak.per_gpu_details.map(({ used_bytes }) => used_bytes!);
  expect(peak.total_bytes).toBe(first! + second!);
  expect([peak.max_gb, peak.mean_gb]).toEqual([
    Math.max(first!, second!) / 1e9,
    (first! + second!) / 2 / 1e9,
  ]);
  expect(sum(memory_breakdown.components.map(({ bytes }) => bytes))).toBe(
    memory_breakdown.total_measured_bytes,
  );
  expect(result.profile.latency_stats.runs).toBe(1);
});
