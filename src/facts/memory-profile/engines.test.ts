import { expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { estimateMemory } from '../../llm/memory-estimate.js';
import { floatStorage } from '../../llm/storage.js';
import type { VllmLogFacts, VllmRankFacts } from '../../model/vllm-log.js';
import { tinyConfig } from '../test-session.js';
import { breakdownOf } from './breakdown.js';
import { serverPlace } from './server-place.js';
import { vllmPlace } from './vllm-place.js';

const gib = 2 ** 30;
const fact = (value: number, line: string) => ({ value, line, line_number: 1, rounding_bytes: 0 });

/** Log lines of vLLM 0.11 on one GPU: 0.9 × 139.8 GiB. */
const rank = {
  rank: 0,
  weights: fact(14.9889 * gib, 'Model loading took 14.9889 GiB and 5.5 seconds'),
  kv_cache: fact(109.1 * gib, 'Available KV cache memory: 109.10 GiB'),
  activation_peak: fact(1.5 * gib, '1.50 GiB for peak activation'),
  activation_includes_graphs: true,
  cuda_graphs_estimate: fact(0.5 * gib, 'Estimated CUDA graph memory: 0.50 GiB total'),
  non_torch: fact(0.13 * gib, '0.13 GiB for non-torch memory'),
  cuda_graphs: fact(0.6 * gib, 'Graph capturing finished in 5 secs, took 0.60 GiB'),
} as VllmRankFacts;

test('vLLM: components come from its log, with the log line as evidence, plus a residual', () => {
  const log = { ranks: [rank] } as VllmLogFacts;
  const measured = { bytes: 127 * gib, source: 'NVML device: peak − baseline', shared: false, listed: false };
  const result = breakdownOf([vllmPlace(log, 0, 3)], measured, null);
  const componentOf = (name: string) => result.components.find(({ component }) => component === name)!;
  expect(componentOf('model_weights')).toMatchObject({
    bytes: 14.9889 * gib,
    confidence: 'high',
    evidence: ['log: Model loading took 14.9889 GiB and 5.5 seconds'],
  });
  // vLLM's figure for activations includes its estimate for graphs.
  expect(componentOf('activations').bytes).toBe(1 * gib);
  expect(componentOf('activations').confidence).toBe('medium');
  expect(result.framework_overhead_gb).toBeCloseTo((0.73 * gib) / 1e9, 9);
  const known = 14.9889 + 109.1 + 1 + 0.13 + 0.6;
  expect(result.residual_bytes! / gib).toBeCloseTo(127 - known, 9);
  expect(result.confidence_levels.overall).toBe('medium');
});

test('a server: KV pool from its reported tokens, other components computed with low confidence', () => {
  const architecture = readArchitecture(tinyConfig);
  const request = { batchSize: 2, inputLen: 8, outputLen: 4, storage: floatStorage('float16') };
  const estimate = estimateMemory(architecture, request);
  const pool = { tokens: 1000, bytes: null, used_share: 0.1, max_concurrency: null, source: '/metrics' };
  const { parts } = serverPlace(estimate, pool);
  // K and V, 2 layers, 2 KV heads of 16, 2 bytes.
  expect(parts.find(({ component }) => component === 'kv_cache')).toMatchObject({
    bytes: 1000 * 2 * 2 * 2 * 16 * 2,
    confidence: 'medium',
  });
  expect(parts.map(({ component }) => component)).toEqual(['model_weights', 'kv_cache', 'activations']);
  expect(parts[0]!.confidence).toBe('low');
});

test('a server that reports the bytes of its KV pool: the pool is not computed', () => {
  const pool = { tokens: 524_288, bytes: 2 ** 30, used_share: 0, max_concurrency: null, source: '/metrics' };
  const { parts } = serverPlace(null, pool);
  expect(parts).toMatchObject([{ component: 'kv_cache', bytes: 2 ** 30, confidence: 'medium' }]);
  expect(parts[0]!.evidence).toContain('/metrics: kv_cache_memory_bytes');
});
