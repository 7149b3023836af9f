/** A server's own metrics under our names; unreported ones are absent. */
export type ServerReading = Record<string, number>;

/** Sum and count of a histogram over requests, s: their increase gives a mean. */
function histogram(name: string, from: readonly string[]): Record<string, { from: string[]; over: 'sum' }> {
  return {
    [`${name}_seconds_total`]: { from: from.map((source) => `${source}_sum`), over: 'sum' },
    [`${name}_requests_total`]: { from: from.map((source) => `${source}_count`), over: 'sum' },
  };
}

/** Our name of a metric, and its name on each server. Several series of a name are summed (`sum`) or the largest is taken (`max`). */
const metricSources: Record<string, { from: string[]; over: 'sum' | 'max' }> = {
  requests_running: {
    from: [
      'vllm:num_requests_running',
      'sglang:num_running_reqs',
      'tgi_batch_current_size',
      'llamacpp:requests_processing',
      'inferscope:num_requests_running',
    ],
    over: 'sum',
  },
  requests_waiting: {
    from: [
      'vllm:num_requests_waiting',
      'sglang:num_queue_reqs',
      'tgi_queue_size',
      'llamacpp:requests_deferred',
      'inferscope:num_requests_waiting',
    ],
    over: 'sum',
  },
  kv_cache_usage_ratio: {
    from: [
      'vllm:kv_cache_usage_perc',
      'vllm:gpu_cache_usage_perc',
      'sglang:token_usage',
      'llamacpp:kv_cache_usage_ratio',
      'inferscope:kv_cache_usage_perc',
    ],
    over: 'max',
  },
  prefix_cache_hit_ratio: { from: ['sglang:cache_hit_rate'], over: 'max' },
  prefix_cache_hits_total: {
    from: ['vllm:prefix_cache_hits_total', 'vllm:prefix_cache_hits', 'vllm:gpu_prefix_cache_hits_total'],
    over: 'sum',
  },
  prefix_cache_queries_total: {
    from: [
      'vllm:prefix_cache_queries_total',
      'vllm:prefix_cache_queries',
      'vllm:gpu_prefix_cache_queries_total',
    ],
    over: 'sum',
  },
  preemptions_total: { from: ['vllm:num_preemptions_total', 'vllm:num_preemptions'], over: 'sum' },
  prompt_tokens_total: {
    from: [
      'vllm:prompt_tokens_total',
      'sglang:prompt_tokens_total',
      'tgi_request_input_length_sum',
      'llamacpp:prompt_tokens_total',
      'inferscope:prompt_tokens_total',
    ],
    over: 'sum',
  },
  generation_tokens_total: {
    from: [
      'vllm:generation_tokens_total',
      'sglang:generation_tokens_total',
      'tgi_request_generated_tokens_sum',
      'llamacpp:tokens_predicted_total',
      'inferscope:generation_tokens_total',
    ],
    over: 'sum',
  },
  ...histogram('queue', [
    'vllm:request_queue_time_seconds',
    'tgi_request_queue_duration',
    'inferscope:request_queue_time_seconds',
  ]),
  ...histogram('prefill', ['vllm:request_prefill_time_seconds', 'inferscope:request_prefill_time_seconds']),
  ...histogram('decode', ['vllm:request_decode_time_seconds']),
  ...histogram('e2e', [
    'vllm:e2e_request_latency_seconds',
    'tgi_request_duration',
    'inferscope:e2e_request_latency_seconds',
  ]),
};

/** The name of the server of the embedded engine, as its metrics have it. */
export const embeddedServer = 'inferscope serve';

const servers: [prefix: string, name: string][] = [
  ['vllm:', 'vLLM'],
  ['sglang:', 'SGLang'],
  ['tgi_', 'TGI'],
  ['llamacpp:', 'llama.cpp'],
  ['inferscope:', embeddedServer],
];

/** Values by metric name of the Prometheus text format: `name{labels} value [timestamp]`. */
function readSeries(text: string): Map<string, number[]> {
  const valuesByName = new Map<string, number[]>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([A-Za-z_:][\w:]*)(?:\{.*\})?\s+(\S+)/.exec(line);
    const value = Number(match?.[2]);
    // Counts, seconds and shares: negative or huge values are invalid and skipped.
    if (!match || !(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) continue;
    const values = valuesByName.get(match[1]!) ?? [];
    values.push(value);
    valuesByName.set(match[1]!, values);
  }
  return valuesByName;
}

/** The metrics of a /metrics page under our names, and the server that wrote it. */
export function readServerMetrics(text: string): { server: string | null; reading: ServerReading } {
  const seriesValues = readSeries(text);
  const reading: ServerReading = {};
  for (const [name, { from, over }] of Object.entries(metricSources)) {
    const values = from.map((alias) => seriesValues.get(alias)).find((list) => list !== undefined);
    if (values === undefined) continue;
    reading[name] = over === 'sum' ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
  }
  const names = [...seriesValues.keys()];
  const server = servers.find(([prefix]) => names.some((name) => name.startsWith(prefix)))?.[1] ?? null;
  return { server, reading };
}
