import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { VllmLogBytes, VllmRankFacts } from '../../model/vllm-log.js';
import { parseVllmLog } from './parse.js';

const readFixture = (name: string) => readFileSync(`test/fixtures/vllm-logs/${name}.log`, 'utf8');
const parseFixture = (name: string) => parseVllmLog(readFixture(name));
const gib = (size: VllmLogBytes | null) => size && Math.round((size.value / 2 ** 30) * 1e4) / 1e4;
/** Sizes of a rank as the log shows them. */
const sizes = (rank: VllmRankFacts) =>
  Object.fromEntries(
    Object.entries(rank).flatMap(([field, fact]) =>
      typeof fact === 'object' && fact !== null && 'rounding_bytes' in fact ? [[field, gib(fact)]] : [],
    ),
  );

describe('one process', () => {
  test('0.4.2: weights and blocks', () => {
    const log = parseFixture('v0.4.2-opt-125m');
    expect(log).toMatchObject({
      version: { value: '0.4.2' },
      engine: { value: 'V0' },
      model: { value: 'facebook/opt-125m' },
      dtype: { value: 'float16' },
      quantization: { value: null },
      kv_cache_dtype: { value: 'auto' },
      max_model_len: { value: 2048 },
      tensor_parallel_size: { value: 1 },
      enforce_eager: { value: false },
      kv_cache_blocks: { value: 4700 },
      cpu_blocks: { value: 7281 },
      kv_cache_tokens: null,
      starts: 1,
      reason: null,
    });
    // 125,239,296 parameters of 2 bytes alone would be 0.2333 GiB; vLLM pads the vocabulary.
    expect(log.ranks.map(sizes)).toEqual([{ weights: 0.2389 }]);
    expect(log.ranks[0]).toMatchObject({ rank: 0, rank_source: 'single', process: '' });
    expect(log.ranks[0]!.weights).toMatchObject({
      value: Math.round(0.2389 * 2 ** 30),
      rounding_bytes: Math.ceil(0.00005 * 2 ** 30),
      line: 'INFO 05-29 10:26:05 model_runner.py:175] Loading model weights took 0.2389 GB',
      line_number: 3,
    });
  });

  test("0.32 on a CPU: pool and memory node from the worker's line; no line about weights", () => {
    const log = parseFixture('v0.32.0-cpu');
    expect(log).toMatchObject({
      version: { value: '0.32.0' },
      engine: { value: 'V1' },
      model: { value: 'tiny' },
      dtype: { value: 'bfloat16' },
      max_model_len: { value: 512 },
      max_num_batched_tokens: { value: 4096 },
      enforce_eager: { value: true },
      enable_prefix_caching: { value: false },
      init_seconds: { value: 1.43 },
      max_concurrency: { value: { tokens: 512, requests: 1024 } },
      starts: 1,
      failure: null,
      reason: null,
    });
    expect(log.ranks.map(sizes)).toEqual([{ kv_cache: 1, device_total: 23.54 }]);
    expect(log.ranks[0]).toMatchObject({ rank: 0, rank_source: 'single', process: 'Worker', pid: 13_199 });
    // By hand: K and V of 4 layers, 2 KV heads of 64, 2 bytes are 2048 bytes per token.
    expect(log.kv_cache_tokens!.value * 2 * 4 * 2 * 64 * 2).toBe(2 ** 30);
  });

  test('0.32 on a CPU, two ranks: each has the pool, and a token takes half', () => {
    const log = parseFixture('v0.32.0-cpu-two-ranks');
    expect(log).toMatchObject({ tensor_parallel_size: { value: 2 }, starts: 1, reason: null });
    expect(log.ranks.map((rank) => [rank.rank, rank.rank_source, rank.process, gib(rank.kv_cache)])).toEqual([
      [0, 'log', 'Worker_TP0', 1],
      [1, 'log', 'Worker_TP1', 1],
    ]);
    // By hand: one of the two KV heads is on each rank.
    expect(log.kv_cache_tokens!.value * 2 * 4 * 1 * 64 * 2).toBe(2 ** 30);
  });

  const onH200 = (name: string) =>
    parseVllmLog(readFileSync(`test/fixtures/vllm-0.26-h200/${name}.log`, 'utf8'));

  test('0.26, CUDA graphs and the second model runner: the KV cache is the remainder of the budget', () => {
    const log = onH200('memory-qwen2.5-7b-graphs');
    expect(log).toMatchObject({
      version: { value: '0.26.0' },
      engine: { value: 'V1' },
      dtype: { value: 'bfloat16' },
      max_model_len: { value: 4096 },
      max_num_batched_tokens: { value: 16_384 },
      gpu_memory_utilization: { value: 0.9 },
      enforce_eager: { value: false },
      tensor_parallel_size: { value: 1 },
      kv_cache_tokens: { value: 2_043_280 },
      max_concurrency: { value: { tokens: 4096, requests: 498.85 } },
      init_seconds: { value: 39.13 },
      starts: 1,
      failure: null,
      reason: null,
    });
    const [rank] = log.ranks;
    expect(sizes(rank!)).toEqual({
      weights: 14.32,
      activation_peak: 2.15,
      non_torch: 0.22,
      cuda_graphs: 0.89,
      kv_cache: 109.12,
      budget: 125.82,
      device_total: 139.8,
      device_free_at_start: 139.29,
    });
    expect(rank).toMatchObject({ process: 'EngineCore', pid: 1916, graph_capture_seconds: { value: 6 } });
    // By hand: K and V of 28 layers, 4 KV heads of 128, 2 bytes are 57,344 bytes per token.
    expect((2_043_280 * 2 * 28 * 4 * 128 * 2) / 2 ** 30).toBeCloseTo(109.12, 2);
    // Graphs are captured after the cache is allocated, and are outside the budget.
    expect(Math.abs(125.82 - 14.32 - 2.15 - 0.22 - 109.12)).toBeLessThan(0.02);
  });

  test('0.26, a server: the same lines with the process of its front end before them', () => {
    const log = onH200('server');
    expect(log).toMatchObject({
      version: { value: '0.26.0' },
      max_model_len: { value: 2048 },
      kv_cache_tokens: { value: 3_211_424 },
      starts: 1,
      reason: null,
    });
    expect(sizes(log.ranks[0]!)).toMatchObject({
      weights: 1.86,
      activation_peak: 0.44,
      non_torch: 0.22,
      cuda_graphs: 0.11,
      kv_cache: 67.38,
    });
    // By hand: 22 layers, 4 KV heads of 64, and half of the GPU.
    expect((3_211_424 * 2 * 22 * 4 * 64 * 2) / 2 ** 30).toBeCloseTo(67.38, 2);
    expect(139.8 * log.gpu_memory_utilization!.value - 1.86 - 0.44 - 0.22).toBeCloseTo(67.38, 2);
  });

  test('0.5.4: uses the last of two starts in one log', () => {
    const log = parseFixture('v0.5.4-gptq-and-awq');
    expect(log).toMatchObject({
      starts: 2,
      model: { value: 'kaitchup/Meta-Llama-3.1-8B-Instruct-awq-4bit' },
      quantization: { value: 'awq_marlin' },
      dtype: { value: 'float16' },
      gpu_memory_utilization: { value: 0.9 },
      kv_cache_blocks: { value: 14_846 },
    });
    expect(log.ranks.map(sizes)).toEqual([{ weights: 5.3748 }]);
    // The memory saved in weights went to the KV cache: blocks of 16 tokens, 128 KiB per token.
    const first = parseVllmLog(readFixture('v0.5.4-gptq-and-awq').split('Namespace')[0]!);
    const moved = (14_846 - first.kv_cache_blocks!.value) * 16 * 131_072;
    expect(Math.abs(moved / 2 ** 30 - (14.9888 - 5.3748))).toBeLessThan(0.5);
  });

  test('0.6.4: the profiling line; utilization × total − the other parts is the KV cache', () => {
    const log = parseFixture('v0.6.4-h200');
    const [rank] = log.ranks;
    expect(sizes(rank!)).toEqual({
      weights: 2.0512,
      torch_peak: 2.38,
      non_torch: 0.73,
      kv_cache: 122.71,
      device_total: 139.8,
      device_used_at_start: 2.71,
      cuda_graphs: 0.16,
    });
    expect(139.8 * log.gpu_memory_utilization!.value - 2.38 - 0.73).toBeCloseTo(122.71, 2);
    expect(log.max_concurrency!.value).toEqual({ tokens: 2048, requests: 2855.85 });
    expect((log.kv_cache_blocks!.value * 16) / 2048).toBeCloseTo(2855.85, 1);
    expect(rank!.graph_capture_seconds!.value).toBe(8);
  });

  test('0.7.2, V0: uses the longer of two lines about weights', () => {
    const log = parseFixture('v0.7.2-qwen2.5-1.5b-t4');
    expect(log.engine!.value).toBe('V0');
    expect(sizes(log.ranks[0]!)).toEqual({
      weights: 2.8875,
      non_torch: 0.01,
      activation_peak: 2.02,
      kv_cache: 2.36,
      budget: 7.28,
      device_total: 14.56,
      cuda_graphs: 0.17,
    });
    expect(log.init_seconds!.value).toBe(56.26);
    // Qwen2.5-1.5B: 28 layers × 2 × 2 heads × 128 × 2 bytes = 28,672 bytes per token, 16 tokens per block.
    const [low, high] = [2.355, 2.365].map((size) => Math.floor((size * 2 ** 30) / (28_672 * 16)));
    expect(log.kv_cache_blocks!.value).toBeGreaterThanOrEqual(low!);
    expect(log.kv_cache_blocks!.value).toBeLessThanOrEqual(high!);
  });

  test('negative sizes stay negative, and the failure is named', () => {
    const log = parseFixture('v0.7.3-negative');
    expect(sizes(log.ranks[0]!)).toMatchObject({ non_torch: -0.51, kv_cache: -0.94 });
    expect(5.4 - 5.43 + 0.51 - 1.42).toBeCloseTo(-0.94, 2);
    expect(log.failure!.value).toMatch(/^No available memory for the cache blocks/);
    expect(log.kv_cache_blocks!.value).toBe(0);
    expect(log.max_concurrency!.value.requests).toBe(0);
  });

  test('0.9.2, V1: KV bytes and tokens agree within a block and the rounding', () => {
    const log = parseFixture('v0.9.2-qwen3-8b-a100');
    const [rank] = log.ranks;
    expect(log).toMatchObject({
      version: { value: '0.9.2' },
      engine: { value: 'V1' },
      dtype: { value: 'bfloat16' },
      max_model_len: { value: 40_960 },
      max_num_batched_tokens: { value: 2048 },
      kv_cache_tokens: { value: 136_080 },
      kv_cache_blocks: { value: 8505 },
      starts: 1,
    });
    expect(sizes(rank!)).toEqual({ weights: 15.2683, kv_cache: 18.69, cuda_graphs: 2.24 });
    expect(rank!.load_seconds!.value).toBe(3.617503);
    // 36 layers × 2 × 8 heads × 128 × 2 bytes
    const perToken = 147_456;
    const difference = Math.abs(log.kv_cache_tokens!.value * perToken - rank!.kv_cache!.value);
    expect(difference).toBeLessThanOrEqual(rank!.kv_cache!.rounding_bytes + 16 * perToken);
  });

  test('0.22: the estimate before and the pool after, with the utilization as typed', () => {
    const log = parseFixture('v0.22.0-qwen2.5-7b');
    expect(log.version!.value).toBe('0.22.0');
    expect(log.model!.value).toBe('/model/Qwen2.5-7B-Instruct');
    expect(log.gpu_memory_utilization!.value).toBe(0.95);
    expect(log.max_num_batched_tokens!.value).toBe(2048);
    expect(gib(log.checkpoint)).toBe(14.19);
    expect(log.ranks).toHaveLength(1);
    expect(log.ranks[0]).toMatchObject({ process: 'EngineCore', pid: 1073, rank: 0 });
    expect(sizes(log.ranks[0]!)).toEqual({
      weights: 14.29,
      kv_cache: 26.32,
      cuda_graphs: 0.31,
      cuda_graphs_estimate: 0.37,
    });
    // 28 layers × 2 × 4 heads × 128 × 2 bytes
    const { kv_cache: kv } = log.ranks[0]!;
    const difference = Math.abs(log.kv_cache_tokens!.value * 57_344 - kv!.value);
    expect(difference).toBeLessThanOrEqual(kv!.rounding_bytes + 16 * 57_344);
  });
});

describe('several ranks', () => {
  test('V0, two stages: the main process is rank 0, each with its own sizes', () => {
    const log = parseFixture('v0.8.5-v0-pipeline-of-2');
    expect(log.ranks.map(({ rank, rank_source, pid }) => [rank, rank_source, pid])).toEqual([
      [0, 'order', null],
      [1, 'order', 12_897],
    ]);
    expect(log.ranks.map((rank) => [gib(rank.weights), gib(rank.kv_cache)])).toEqual([
      [10.8, 14.52],
      [10.3, 14.26],
    ]);
    expect(26.66 - 10.3 - 0.33 - 1.77).toBeCloseTo(14.26, 2);
  });

  test('V0, interleaved lines of many processes: none lost, none mixed', () => {
    const log = parseFixture('v0.8-v0-four-of-sixteen-ranks');
    expect(log.ranks.map(({ pid }) => pid)).toEqual([507, 521, 577]);
    expect(log.ranks.every((rank) => gib(rank.weights) === 21.21 && gib(rank.kv_cache) === 1.57)).toBe(true);
    expect(log.ranks.map((rank) => gib(rank.budget))).toEqual([23.35, null, 23.35]);
    expect(log.gpu_memory_utilization!.value).toBe(0.99);
  });

  test('V1 up to 0.10: the rank is in the prefix', () => {
    const log = parseFixture('v0.8.3-v1-four-ranks');
    expect(log.ranks.map(({ rank, rank_source, pid }) => [rank, rank_source, pid])).toEqual([
      [1, 'log', 52_940],
    ]);
    expect(sizes(log.ranks[0]!)).toEqual({ weights: 34.434 });
  });

  test('0.11: exact bytes of the KV cache; the parts sum to the budget', () => {
    const log = parseFixture('v0.11-two-ranks-h200');
    expect(log.ranks.map(({ rank, process }) => [rank, process])).toEqual([
      [0, 'Worker_TP0'],
      [1, 'Worker_TP1'],
    ]);
    for (const rank of log.ranks) {
      expect(rank.kv_cache).toMatchObject({ value: 47_878_721_024, rounding_bytes: 0 });
      expect(sizes(rank)).toMatchObject({
        device_free_at_start: 139.21,
        device_total: 139.81,
        budget: 125.83,
        weights: 74.28,
        activation_peak: 5.58,
        non_torch: 1.38,
        cuda_graphs: 2.37,
      });
      expect(125.83 - 74.28 - 5.58 - 1.38).toBeCloseTo(rank.kv_cache!.value / 2 ** 30, 2);
    }
    expect(log.gpu_memory_utilization!.value).toBe(0.9);
    expect(log.ranks[0]!.kv_cache!.line.length).toBeLessThan(300);
  });

  test("a hybrid model: tokens from the engine's line, memory from the worker's", () => {
    const log = parseFixture('v0.11-kimi-linear');
    expect(log.kv_cache_tokens!.value).toBe(75_840);
    expect(log.ranks.map((rank) => [rank.rank, gib(rank.kv_cache)])).toEqual([[0, 2.3]]);
  });

  test('0.27: reads ranks of which one has no KV cache line', () => {
    const log = parseFixture('v0.27.1-two-ranks');
    expect(log.gpu_memory_utilization!.value).toBe(0.82);
    expect(log.ranks.map(sizes)).toEqual([
      { cuda_graphs_estimate: 0.36, kv_cache: 6.87 },
      { cuda_graphs_estimate: 0.36 },
    ]);
  });

  test('2026: weights and memory outside PyTorch in one figure', () => {
    const log = parseFixture('2026-four-ranks-qwen3-235b-fp8');
    expect(log.ranks.map(({ rank }) => rank)).toEqual([0, 1, 2, 3]);
    for (const rank of log.ranks) {
      expect(sizes(rank)).toMatchObject({
        consumed: 56.89,
        activation_peak: 0.76,
        kv_cache: 27.85,
        budget: 85.51,
      });
      expect(rank.activation_includes_graphs).toBe(true);
      expect(85.51 - 56.89 - 0.76).toBeCloseTo(27.85, 1);
    }
    expect(gib(log.ranks[0]!.weights)).toBe(55.19);
    // 94 layers × 2 × 4 heads / 4 GPUs × 128 × 2 bytes
    const perToken = 48_128;
    const { kv_cache: kv } = log.ranks[0]!;
    const difference = Math.abs(log.kv_cache_tokens!.value * perToken - kv!.value);
    expect(difference).toBeLessThanOrEqual(kv!.rounding_bytes + 16 * perToken);
  });

  const esc = String.fromCodePoint(27);

  test('colors, progress bars that end in carriage returns, interleaved ranks', () => {
    const worker = (rank: number) => `${esc}[1;36m(Worker_TP${rank}_EP${rank} pid=${400 + rank})${esc}[0;0m `;
    const bar = (n: number) =>
      `Loading safetensors checkpoint shards:  ${n}0% Completed | ${n}/10 [00:0${n}<?]\r`;
    const log = parseVllmLog(
      [
        `${bar(3)}${worker(2)}INFO 08-21 18:18:05 [x.py:1] Model loading took 12.25 GiB memory and 1.5 seconds\r`,
        `${bar(9)}${worker(0)}${worker(1)}INFO 08-21 18:18:05 [x.py:1] Model loading took 12.50 GiB memory and 1.5 seconds`,
        `${worker(0)}INFO 08-21 18:18:06 [x.py:1] Model loading took 12.75 GiB memory and 2 seconds${worker(3)}INFO Model loading took 13.00 GiB memory and 3 seconds\n`,
      ].join('\n'),
    );
    expect(log.ranks.map((rank) => [rank.rank, gib(rank.weights), rank.load_seconds!.value])).toEqual([
      [0, 12.75, 2],
      [1, 12.5, 1.5],
      [2, 12.25, 1.5],
      [3, 13, 3],
    ]);
    expect(log.ranks[2]!.weights!.line).toBe(
      '(Worker_TP2_EP2 pid=402) INFO 08-21 18:18:05 [x.py:1] Model loading took 12.25 GiB memory and 1.5 seconds',
    );
  });

  test('names and times that a container runtime prepends; pipeline ranks; data parallel engines', () => {
    const log = parseVllmLog(
      [
        "2026-03-11T17:57:58.953Z (EngineCore_DP0 pid=1) INFO x] Initializing a V1 LLM engine (v0.20.0) with config: model='m', speculative_config=SpeculativeConfig(method='mtp', model='draft', num_spec_tokens=4), tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=2, quantization=fp8",
        "2026-03-11T17:57:58.953Z (EngineCore_DP1 pid=2) INFO x] Initializing a V1 LLM engine (v0.20.0) with config: model='m', tensor_parallel_size=2",
        'vllm-1  | (Worker_DP0_PP1_TP0 pid=11) INFO x] Model loading took 3.00 GiB memory and 1 seconds',
        'vllm-1  | (Worker_DP1_PP0_TP1 pid=12) INFO x] Model loading took 4.00 GiB memory and 1 seconds',
      ].join('\n'),
    );
    expect(log).toMatchObject({ model: { value: 'm' }, quantization: { value: 'fp8' }, starts: 1 });
    expect(log.ranks.map((rank) => [rank.data_parallel_rank, rank.rank, gib(rank.weights)])).toEqual([
      [0, 2, 3],
      [1, 1, 4],
    ]);
  });
});

test('a failed start because other processes use the GPU', () => {
  const log = parseVllmLog(
    'ValueError: Free memory on device cuda:0 (27.28/31.86 GiB) on startup is less than desired GPU memory utilization (0.97, 30.9 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.',
  );
  expect(sizes(log.ranks[0]!)).toEqual({ device_free_at_start: 27.28, device_total: 31.86, budget: 30.9 });
  expect(log.failure!.value).toMatch(/^Free memory on device cuda:0/);
  expect(log.gpu_memory_utilization!.value).toBe(0.97);
});
