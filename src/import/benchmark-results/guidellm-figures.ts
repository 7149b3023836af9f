import { type JsonObject, type MetricList, numberOf, objectOf } from './metric-list.js';

/** GuideLLM's measurements at one load. */
export interface Measured {
  metrics: JsonObject;
  completed: number | null;
  /** First request to last; null if a warm-up or cool-down was excluded. */
  duration: number | null;
}

/** inferscope's name, or null for a metric with another definition; then its unit, factor and meaning. */
const meanings: Record<string, ['ttft' | 'tpot' | null, string, number, string]> = {
  time_to_first_token_ms: ['ttft', 'ms', 1, 'request sent to the first iteration with tokens'],
  inter_token_latency_ms: [
    'tpot',
    'ms',
    1,
    '(last − first token) / (output tokens − 1) per request, weighted by its output tokens − 1: long answers have more weight',
  ],
  time_to_first_output_token_ms: [null, 'ms', 1, 'request sent to the first token that is not reasoning'],
  time_per_output_token_ms: [
    null,
    'ms',
    1,
    '(last token − request sent) / output tokens, weighted by the output tokens; includes the time to the first token',
  ],
  request_scheduled_latency: [null, 'ms', 1000, 'scheduled send time to the end of the response'],
  request_dispatch_delay: [null, 'ms', 1000, 'scheduled send time to the actual send'],
  request_goodput: [null, 'req/s', 1, "rate of completions that met the run's own limits"],
  request_latency: [null, 'ms', 1000, 'request sent to the end of the response, not to its last content'],
  requests_per_second: [null, 'req/s', 1, 'rate of completions, weighted by time'],
  request_concurrency: [null, 'requests', 1, 'requests in flight, weighted by time'],
  output_tokens_per_second: [null, 'tok/s', 1, 'rate of generated tokens, weighted by time'],
  tokens_per_second: [null, 'tok/s', 1, 'rate of prompt and generated tokens, weighted by time'],
  prompt_token_count: [null, 'tokens', 1, 'prompt tokens per request'],
  output_token_count: [null, 'tokens', 1, 'generated tokens per request'],
  total_token_count: [null, 'tokens', 1, 'prompt and generated tokens per request'],
};

/** The distributions over successful requests. One with count 0 is filled with zeros and skipped. */
export function putFigures(measured: Measured, list: MetricList): void {
  const successful = (name: string) => objectOf(objectOf(measured.metrics[name])?.['successful']);
  for (const [name, [commonName, unit, factor, definition]] of Object.entries(meanings)) {
    const summary = successful(name);
    const n = numberOf(summary?.['count']);
    if (!summary || n === 0) continue;
    // A request without a token, streamed or not, is included as 0.
    const hasZeros = commonName !== null && numberOf(summary['min']) === 0;
    if (hasZeros && numberOf(summary['max']) === 0) continue;
    // Entries per token or moment are not independent observations.
    const entries = n !== null && measured.completed !== null && n > measured.completed ? null : n;
    const source = `file: metrics.${name}.successful`;
    const reported = name.replace(/_ms$/, '');
    const requestCount =
      commonName === 'tpot'
        ? requestCountIfUnweighted(measured, summary, successful('output_token_count'))
        : n;
    for (const [statistic, value] of statisticsOf(summary)) {
      const scaled = value === null ? null : value * factor;
      if (commonName && !hasZeros && requestCount !== null) {
        const note = commonName === 'tpot' ? {} : { note: definition };
        list.addCommon(commonName, statistic, scaled, { n: requestCount, source, ...note });
      } else {
        const text = hasZeros ? `${definition}; a request without a token counts as 0` : definition;
        list.addOwn(reported, unit, text, statistic, scaled, { n: entries, source });
      }
    }
  }
  const attained = numberOf(measured.metrics['slo_attainment']);
  const source = 'file: metrics.slo_attainment';
  const text = "share of requests that met all of the run's own limits; failed requests count as not met";
  list.addOwn('slo_attainment', 'ratio', text, 'value', attained, { source });
}

/**
 * Since 0.2 the distribution of inter_token_latency_ms has output tokens − 1 entries per request. It equals TPOT (one
 * value per request) if all answers have one length, or there is one entry per request.
 * @returns the number of requests in it, or null if long answers have more weight
 */
function requestCountIfUnweighted(
  measured: Measured,
  summary: JsonObject,
  lengths: JsonObject | null,
): number | null {
  const n = numberOf(summary['count']);
  if (n === null || measured.completed === null || n <= measured.completed) return n;
  const [min, max] = [numberOf(lengths?.['min']), numberOf(lengths?.['max'])];
  return min !== null && min === max && min > 1 ? n / (min - 1) : null;
}

/** Sums, and rates over the whole benchmark if no part of it was excluded. */
export function putTotals({ metrics, completed, duration }: Measured, list: MetricList): void {
  const sum = (field: string, name: 'input_tokens' | 'output_tokens') => {
    const value = numberOf(objectOf(objectOf(metrics[field])?.['successful'])?.['total_sum']);
    list.addCommon(name, 'value', value, { source: `file: metrics.${field}.successful.total_sum` });
    return value;
  };
  sum('prompt_token_count', 'input_tokens');
  const output = sum('output_token_count', 'output_tokens');
  if (!duration) return;
  const rate = (amount: number | null) => (amount === null ? null : amount / duration);
  list.addCommon('request_throughput', 'value', rate(completed), {
    source: 'recomputed: completed / duration',
  });
  list.addCommon('output_throughput', 'value', rate(output), {
    source: 'recomputed: output tokens / duration',
  });
}

function statisticsOf(summary: JsonObject): [string, number | null][] {
  const plain = [
    ['mean', 'mean'],
    ['median_step', 'median'],
    ['sd_population', 'std_dev'],
    ['min', 'min'],
    ['max', 'max'],
  ].map(([statistic, key]): [string, number | null] => [statistic!, numberOf(summary[key!])]);
  const percentiles = Object.entries(objectOf(summary['percentiles']) ?? {}).flatMap(
    ([key, value]): [string, number | null][] => {
      // p001 is 0.1 %, p999 is 99.9 %; two digits are percent.
      const digits = /^p(\d{2,3})$/.exec(key)?.[1];
      if (digits === undefined) return [];
      const percent = digits.length === 3 ? Number(digits) / 10 : Number(digits);
      return [[`p${percent}_step`, numberOf(value)]];
    },
  );
  return [...plain, ...percentiles];
}
