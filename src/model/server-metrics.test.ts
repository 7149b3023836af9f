import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readServerMetrics } from './server-metrics.js';

test('reads the metrics of vLLM 0.26 on an H200 after three loads: its counts equal what was sent', () => {
  const page = readFileSync('test/fixtures/vllm-0.26-h200/metrics.prom', 'utf8');
  const { server, reading } = readServerMetrics(page);
  expect(server).toBe('vLLM');
  // Three loads of 64, their warm-up (4, 16 and 32 users) and three probes, 128 tokens each.
  const sent = 3 * 64 + (4 + 16 + 32) + 3;
  expect(reading).toMatchObject({
    requests_running: 0,
    requests_waiting: 0,
    kv_cache_usage_ratio: 0,
    preemptions_total: 0,
    prompt_tokens_total: sent * 128,
    prefix_cache_queries_total: sent * 128,
    // One probe repeats another: 7 of its 8 blocks of 16 tokens, since the last token is always computed.
    prefix_cache_hits_total: 112,
    queue_requests_total: sent,
    prefill_requests_total: sent,
    decode_requests_total: sent,
  });
  // 64 tokens each except for the probes, which request fewer.
  expect(reading['generation_tokens_total']).toBe((sent - 3) * 64 + 12);
  expect(reading['decode_seconds_total']! / sent).toBeCloseTo(0.15, 2);
});
