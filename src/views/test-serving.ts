import { document, type Document } from '../model/document.js';
import type { Distribution, ServingPoint, ServingResult } from '../model/documents/serving.js';
import { figure, missing } from '../model/figure.js';

const none = missing('no_metrics_page', 'the server has no /metrics page');

/** A skewed distribution around a median, ms. */
function spread(p50: number, n: number): Distribution {
  return {
    unit: 'ms',
    n,
    mean: p50 * 1.06,
    sd: p50 * 0.2,
    ci95: [p50 * 1.02, p50 * 1.1],
    min: p50 * 0.8,
    p50,
    p90: p50 * 1.3,
    p95: p50 * 1.5,
    p99: p50 * 2.1,
    max: p50 * 2.6,
    source: 'requests',
  };
}

function pointOf(load: ServingPoint['load'], index: number): ServingPoint {
  const users = load.concurrency ?? load.rate_per_s ?? 1;
  const queue = Math.max(0, users - 16);
  const ttft = 40 + 2 * users + 25 * queue;
  const tpot = 12 + 0.2 * Math.min(users, 16);
  const failed = users >= 64 ? 7 : 0;
  const n = load.requests - failed;
  const open = load.kind !== 'closed';
  const rate = (1e3 * Math.min(users, 16)) / (ttft / 4 + 63 * tpot);
  const share = Math.max(0.05, Math.min(1, 1.2 - queue / 40));
  return {
    execution_id: `load-${String(index + 1).padStart(2, '0')}`,
    load,
    seconds: load.requests / rate,
    requests: {
      measured: load.requests,
      ok: n,
      failed,
      cancelled: failed > 0 ? 2 : 0,
      warmup: load.warmup_requests,
      failures:
        failed > 0
          ? [
              { kind: 'http_503', count: 5, example: 'HTTP 503: <overloaded>' },
              { kind: 'stream_cut', count: 2, example: null },
            ]
          : [],
    },
    tokens: {
      input: figure(128, 'tokens', 'usage', { n }),
      output: figure(63.5, 'tokens', 'usage', { n }),
      shorter_outputs: 3,
      longer_outputs: 0,
      tokenizer_difference: missing('no_tokenizer', 'no tokenizer was given'),
      cached_share: none,
      chunks_not_tokens: 0,
    },
    latency: {
      ttft: spread(ttft, n),
      ttft_from_schedule: open
        ? spread(ttft * 1.2, n)
        : missing('closed_loop', 'a closed load has no schedule'),
      tpot: spread(tpot, n),
      itl: spread(tpot * 0.98, n * 63),
      e2e: spread(ttft + 63 * tpot, n),
      e2e_from_schedule: open
        ? spread(ttft * 1.2 + 63 * tpot, n)
        : missing('closed_loop', 'a closed load has no schedule'),
    },
    throughput: {
      offered_requests_per_s: open
        ? figure(load.rate_per_s ?? 0, 'req/s', 'schedule')
        : missing('closed_loop', 'a closed load offers no rate'),
      requests_per_s: figure(rate, 'req/s', 'requests / time'),
      output_tokens_per_s: figure(rate * 63.5, 'tok/s', 'tokens / time'),
      total_tokens_per_s: figure(rate * 191.5, 'tok/s', 'tokens / time'),
    },
    goodput: {
      requests_per_s: figure(rate * share, 'req/s', 'good requests / time'),
      share: figure(share, 'ratio', 'good / counted'),
      meets_slo: share >= 0.99,
    },
    server: {
      requests_running_max: figure(Math.min(users, 16), 'requests', '/metrics'),
      requests_waiting_max: figure(queue, 'requests', '/metrics'),
      kv_cache_usage_max: none,
      prefix_cache_hit_ratio: none,
      preemptions: none,
    },
    client: {
      threads: 1,
      send_lag_p50_ms: 0.1,
      send_lag_p99_ms: 0.8,
      event_loop_delay_p99_ms: 1.2,
      event_loop_delay_max_ms: 4,
      event_loop_utilization: 0.1 + 0.01 * users,
      process_cores: 0.2 + 0.01 * users,
      bound: users >= 64,
      reasons: users >= 64 ? ['the event loop was busy 97 % of the time'] : [],
    },
  };
}

const load = (kind: ServingPoint['load']['kind'], level: number): ServingPoint['load'] => ({
  kind,
  concurrency: kind === 'closed' ? level : null,
  rate_per_s: kind === 'closed' ? null : level,
  requests: 100,
  warmup_requests: 5,
  ramp_s: 0,
  seconds: kind === 'closed' ? null : 30,
});

/** A load sweep as `inferscope bench serve` writes it, for view tests: it saturates at 16 users and fails at 64. */
export function testServing(kind: 'closed' | 'poisson' = 'closed'): Document<ServingResult> {
  const points = [1, 4, 32, 64, 16].map((level, index) => pointOf(load(kind, level), index));
  return document(
    'serving',
    '1.0',
    {
      session: {
        id: '20261121-0840-serve-llama',
        name: null,
        title: 'llama-24m · inferscope serve · 5 loads',
        started_at: '2026-11-21T08:40:00.000Z',
        status: 'complete',
      },
      target: {
        url: 'http://127.0.0.1:8000/v1',
        api: 'completions',
        model: 'llama-24m',
        server: 'vllm',
        metrics_url: 'http://127.0.0.1:8000/metrics',
      },
      prompts: { seed: 7, seed_used_before: false, input_len: 128, output_len: 64, tokenizer: null },
      slo: { ttft_ms: 200, tpot_ms: 30, e2e_ms: null, share: 0.99 },
      probe: {
        ttft_ms: 44,
        repeated_ttft_ms: 12,
        repeated_cached_tokens: 112,
        caches_prefixes: true,
        usage: true,
      },
      points,
      saturation: { execution_id: 'load-05', text: 'It saturates at 16 users: more gives no more tokens.' },
      best_under_slo: { execution_id: 'load-05', text: 'The highest load that meets the SLO is 16 users.' },
    },
    [
      {
        code: 'client_bound',
        severity: 'warning',
        text: 'The client was the limit at 64 users.',
      },
    ],
  );
}
