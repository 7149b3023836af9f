import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import type { Workload } from '../../model/manifest.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import { tinyConfig } from '../test-session.js';
import { estimateProfile } from '../validate/estimate-profile.js';
import { profileFieldsSchema } from '../validate/profile-fields.js';
import { dtypesOfRun } from './dtypes.js';
import { engineType } from './engine-type.js';
import { expectedMemory } from './expected.js';
import { planOf } from './test-run.js';

const gib = 2 ** 30;
const architecture = readArchitecture(tinyConfig);
/** K and V, 2 layers, 2 KV heads of 16, 2 bytes. */
const tokenBytes = 2 * 2 * 2 * 16 * 2;

function workloadOf(
  change: Partial<Workload> = {},
  options: Record<string, string> = {},
  name = 'vllm',
): Workload {
  const sizes = { num_parameters: null, weight_bytes: null };
  return {
    model: {
      name: 'tiny',
      config: tinyConfig,
      dtype: 'bfloat16',
      quantization: null,
      weights: 'random',
      ...sizes,
    },
    engine: { name, version: '0.32.0', options },
    device: 'cpu',
    threads: null,
    batch_size: 2,
    input_len: 8,
    output_len: 4,
    tensor_parallel_size: 1,
    ...change,
  };
}

/** Log lines of vLLM 0.32.0 on a CPU, one per worker. */
const logOf = (word: string, ranks: number): VllmLogFacts => {
  const line = `(Worker pid=13199) INFO 11-21 15:00:21 [cpu_worker.py:260] ${word} set (1.0/23.54) GiB for KV cache on node 0.`;
  const fact = { value: gib, line, line_number: 1, rounding_bytes: 0 };
  return { ranks: Array.from({ length: ranks }, (_, rank) => ({ rank, kv_cache: fact })) } as VllmLogFacts;
};

describe('vLLM on a CPU', () => {
  const plan = planOf({ engine: 'vllm' });
  const facts = { architecture, gpus: [], pool: null };
  const bytesOf = (workload: Workload, log: VllmLogFacts | null) => {
    const { lines } = expectedMemory(workload, plan, { ...facts, log })!;
    return new Map(lines.map(({ component, bytes }) => [component, bytes]));
  };

  test('uses VLLM_CPU_KVCACHE_SPACE for each worker', () => {
    expect(bytesOf(workloadOf(), logOf('Explicitly', 1)).get('kv_cache')).toBe(gib);
    const two = bytesOf(workloadOf({ tensor_parallel_size: 2 }), logOf('Explicitly', 2));
    expect(two.get('kv_cache')).toBe(2 * gib);
    // Recorded with one rank and with two: 2.229 and 2.599 GB of its other processes and code.
    expect(Math.abs(bytesOf(workloadOf(), null).get('framework_overhead')! - 2.229e9)).toBeLessThan(15e6);
    expect(Math.abs(two.get('framework_overhead')! - 2.599e9)).toBeLessThan(15e6);
    expect([...two.keys()]).toEqual(['model_weights', 'kv_cache', 'activations', 'framework_overhead']);
  });

  test('has no figure for a pool size that vLLM chose itself', () => {
    for (const log of [logOf('Auto', 1), null])
      expect(bytesOf(workloadOf(), log).has('kv_cache')).toBe(false);
    const withOption = workloadOf({}, { kv_cache_memory_bytes: '500000000' });
    expect(bytesOf(withOption, null).get('kv_cache')).toBe(500_000_000);
  });
});

describe('vLLM on a GPU: arguments of the run', () => {
  const plan = planOf({ engine: 'vllm' });
  const expectedWith = (options: Record<string, string>) => {
    const estimate = expectedMemory(workloadOf({ device: 'cuda' }, options), plan, {
      architecture,
      gpus: [0],
      log: null,
      pool: null,
    })!;
    return { request: estimate.request, components: estimate.lines.map(({ component }) => component) };
  };

  test('reads numbers and booleans that are stored as text', () => {
    expect(expectedWith({}).components).toContain('cuda_graphs');
    const eager = expectedWith({
      enforce_eager: 'true',
      max_num_seqs: '8',
      max_num_batched_tokens: '512',
      gpu_memory_utilization: '0.5',
    });
    expect(eager.components).not.toContain('cuda_graphs');
    expect(eager.request).toMatchObject({
      maxNumSeqs: 8,
      maxNumBatchedTokens: 512,
      gpuMemoryUtilization: 0.5,
    });
  });
});

test("vLLM in FP8: the figures equal those of validate for the profile's file", () => {
  const text = readFileSync(join('test', 'fixtures', 'memory-vllm-h200', 'tiny-fp8.json'), 'utf8');
  const profile = profileFieldsSchema.parse(JSON.parse(text));
  const config = profile.model_info.config!;
  const fileEstimate = estimateProfile(profile);
  if (typeof fileEstimate === 'string') throw new Error(fileEstimate);
  const workload = workloadOf({
    model: { ...workloadOf().model!, config, quantization: 'fp8' },
    device: 'cuda',
    engine: {
      name: 'vllm',
      version: '0.26.0',
      options: { gpu_memory_utilization: '0.4', max_model_len: '2048', quantization: 'fp8' },
    },
  });
  const plan = planOf({
    engine: 'vllm',
    gpus: [{ gpu: 0, name: 'NVIDIA H200', total_bytes: 150_754_820_096 }],
    config: {
      ...planOf().config,
      batch_size: 8,
      input_len: 512,
      output_len: 64,
      quantization: 'fp8',
      gpu_memory_utilization: 0.4,
      max_model_len: 2048,
    },
  });
  const facts = { architecture: readArchitecture(config), gpus: [0], log: null, pool: null };
  expect(expectedMemory(workload, plan, facts)!.lines).toEqual(fileEstimate.estimate.lines);
});

describe('a server behind a URL', () => {
  const plan = planOf({ engine: 'openai', where: 'url' });
  const server = (options: Record<string, string> = {}) => workloadOf({ device: 'server' }, options, 'vLLM');

  test('takes its pool in tokens or bytes', () => {
    const kv = (tokens: number | null, bytes: number | null) => {
      const pool = { tokens, bytes, used_share: 0, max_concurrency: null, source: '/metrics' };
      const { lines } = expectedMemory(server(), plan, { architecture, gpus: [], log: null, pool })!;
      return lines.find(({ component }) => component === 'kv_cache')?.bytes;
    };
    expect(kv(1000, null)).toBe(1000 * tokenBytes);
    expect(kv(524_288, gib)).toBe(gib);
  });

  test("uses the server's engine and its reported KV-cache dtype", () => {
    expect(engineType(server(), plan)).toBe('vllm');
    const unknown = workloadOf({ device: 'server' }, {}, 'openai-compatible');
    expect(engineType(unknown, plan)).toBe('openai');
    expect(engineType(workloadOf(), planOf({ engine: 'vllm' }))).toBe('vllm');
    const { dtypes } = dtypesOfRun({ recorded: [] }, plan, {
      workload: server({ kv_cache_dtype: 'fp8' }),
      log: null,
      estimate: null,
    });
    expect(dtypes.kv_cache).toBe('fp8');
  });
});
