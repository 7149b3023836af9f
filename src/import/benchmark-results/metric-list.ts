import type { ResultMetric } from '../../model/metric-source.js';

/**
 * Names with the same definition in the results of all tools. A metric gets one only if its source has this definition.
 */
const commonDefinitions = {
  ttft: ['ms', 'request sent to the first chunk with generated text'],
  tpot: [
    'ms',
    '(last − first generated text) / (output tokens − 1) per request; undefined for fewer than two tokens',
  ],
  itl: ['ms', 'gap between tokens; a chunk of k tokens gives k equal gaps'],
  e2e: ['ms', 'request sent to its last content'],
  request_throughput: ['req/s', 'completed requests / duration'],
  output_throughput: ['tok/s', 'generated tokens of completed requests / duration'],
  total_throughput: ['tok/s', 'prompt and generated tokens of completed requests / duration'],
  duration: ['s', 'first request sent to last one answered'],
  completed: ['requests', 'requests answered in full'],
  failed: ['requests', 'requests that did not complete'],
  input_tokens: ['tokens', 'prompt tokens of completed requests'],
  output_tokens: ['tokens', 'generated tokens of completed requests'],
} as const;

export type CommonMetric = keyof typeof commonDefinitions;

interface Details {
  n?: number | null;
  source: string;
  /** A detail that inferscope's definition leaves open. */
  note?: string;
}

export interface MetricList {
  metrics: ResultMetric[];
  /** A number with the same definition as inferscope's. Non-finite numbers are dropped. */
  addCommon(name: CommonMetric, statistic: string, value: unknown, details: Details): void;
  /** A number with the tool's own definition, stored as `tool.name`. */
  addOwn(
    name: string,
    unit: string,
    definition: string | null,
    statistic: string,
    value: unknown,
    details: Details,
  ): void;
}

/**
 * Collects the metrics of one point.
 * @param tool prefix for names of the tool's own definitions
 */
export function metricList(tool: string): MetricList {
  const metrics: ResultMetric[] = [];
  const put = (metric: Omit<ResultMetric, 'value'>, value: unknown) => {
    if (typeof value === 'number' && Number.isFinite(value)) metrics.push({ ...metric, value });
  };
  return {
    metrics,
    addCommon(name, statistic, value, { n = null, source, note }) {
      const [unit, text] = commonDefinitions[name];
      const definition = note === undefined ? text : `${text} (${note})`;
      put({ name, same_definition: true, statistic, unit, n, definition, source }, value);
    },
    addOwn(name, unit, definition, statistic, value, { n = null, source }) {
      put({ name: `${tool}.${name}`, same_definition: false, statistic, unit, n, definition, source }, value);
    },
  };
}

/**
 * Adds totals that serving benchmarks write under the same names.
 * @param total key of the total token throughput
 */
export function addServingTotals(list: MetricList, run: JsonObject, total: string): void {
  const keys: [CommonMetric, string][] = [
    ['input_tokens', 'total_input_tokens'],
    ['output_tokens', 'total_output_tokens'],
    ['request_throughput', 'request_throughput'],
    ['output_throughput', 'output_throughput'],
    ['total_throughput', total],
  ];
  for (const [name, key] of keys)
    list.addCommon(name, 'value', numberOf(run[key]), { source: `file: ${key}` });
}

/** A finite number, else null: "inf", NaN and absent fields are not numbers. */
export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

export function numbersOf(value: unknown): number[] {
  return Array.isArray(value)
    ? value.filter((element): element is number => typeof element === 'number' && Number.isFinite(element))
    : [];
}

export type JsonObject = Record<string, unknown>;

export function objectOf(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

/** Converts µs since 1970 to ns; null for an impossible time (1e308). */
export function realtimeNs(us: number): bigint | null {
  const rounded = Math.round(us);
  return Number.isSafeInteger(rounded) ? BigInt(rounded) * 1000n : null;
}

/** Milliseconds per unit of time, by the spellings that tools write; null for other units. */
export function msPerUnit(unit: string): number | null {
  return { ms: 1, s: 1000, sec: 1000, seconds: 1000, us: 1e-3, µs: 1e-3, ns: 1e-6 }[unit] ?? null;
}
