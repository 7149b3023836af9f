import type { GenerationMetrics } from './generation-queue.js';

/**
 * vLLM's metric names with inferscope's prefix, in the Prometheus text format 0.0.4.
 * @param contextLen tokens that fit in the KV cache
 */
export function prometheusText(metrics: GenerationMetrics, model: string, contextLen: number): string {
  const label = `model_name="${model.replaceAll(/[\\"\n]/g, '_')}"`;
  const lines: string[] = [];
  const add = (
    type: string,
    name: string,
    doc: string,
    samples: [suffix: string, labels: string, value: number][],
  ) => {
    lines.push(`# HELP inferscope:${name} ${doc}`, `# TYPE inferscope:${name} ${type}`);
    for (const [suffix, labels, value] of samples)
      lines.push(`inferscope:${name}${suffix}{${labels}} ${value}`);
  };
  const summary = (name: string, doc: string, { count, sum }: { count: number; sum: number }) =>
    add('summary', name, doc, [
      ['_sum', label, sum],
      ['_count', label, count],
    ]);
  add('gauge', 'num_requests_running', 'Requests being computed.', [['', label, metrics.running]]);
  add('gauge', 'num_requests_waiting', 'Requests in the queue.', [['', label, metrics.waiting]]);
  add('gauge', 'kv_cache_usage_perc', 'Share of the KV cache in use; 1 means full.', [
    ['', label, metrics.contextTokens / contextLen],
  ]);
  add('counter', 'prompt_tokens_total', 'Prompt tokens computed.', [['', label, metrics.promptTokens]]);
  add('counter', 'generation_tokens_total', 'Tokens generated.', [['', label, metrics.generationTokens]]);
  add(
    'counter',
    'request_success_total',
    'Requests finished, by reason.',
    Object.entries(metrics.finished).map(([reason, count]) => [
      '',
      `${label},finished_reason="${reason}"`,
      count,
    ]),
  );
  summary(
    'time_to_first_token_seconds',
    'From arrival to the first token, the queue included.',
    metrics.ttft,
  );
  summary('request_queue_time_seconds', 'From arrival to the start of the prefill.', metrics.queueTime);
  summary(
    'request_prefill_time_seconds',
    'From the start of the prefill to the first token.',
    metrics.prefill,
  );
  summary('e2e_request_latency_seconds', 'From arrival to the last token.', metrics.e2e);
  return `${lines.join('\n')}\n`;
}
