import type { OpClass } from '../model/classes.js';

export const classNames: Record<OpClass, string> = {
  gemm: 'GEMM',
  attention: 'attention',
  norm: 'norm',
  elementwise: 'elementwise',
  copy: 'copy',
  embedding: 'embedding',
  sampling: 'sampling',
  communication: 'communication',
  quantization: 'quantisation',
  other: 'other',
};

const classNamed = (name: string): string => (classNames as Record<string, string>)[name] ?? name;

const barMeanings: Record<string, string> = {
  roofline: 'what the hardware allows',
  serial: 'operations in sequence',
  exposed_comm: 'waiting for communication',
  launch_latency: 'device start-up of launches',
  launch_overhead: 'launching operators',
  synchronization: 'waiting in a synchronise',
  device_dependency: 'device waits for itself',
  unattributed: 'not explained',
  profiler_overhead: 'added by the profiler',
};

const barLabels: Record<string, string> = {
  serial: 'in sequence',
  exposed_comm: 'communication',
  launch_latency: 'launch latency',
  launch_overhead: 'launch overhead',
  device_dependency: 'dependency',
  profiler_overhead: 'profiler',
};

/** Two or three words for a chart's axis. */
export function barLabel(id: string): string {
  const [head = '', ...rest] = id.split('.');
  const tail = rest.join('.');
  if (head === 'inefficiency') return `${classNamed(tail)} over roof`;
  if (head === 'nonessential') return `${classNamed(tail)}, fusable`;
  if (head === 'exposed_copy') return `copy ${tail}`.trim();
  if (head === 'host') return `host: ${tail}`;
  return barLabels[head] ?? head;
}

/** What a waterfall bar id (docs/measurement.md) means, in a few words. */
export function barMeaning(id: string): string {
  const [head = '', ...rest] = id.split('.');
  const tail = rest.join('.');
  if (head === 'inefficiency') return `${classNamed(tail)} over its roof`;
  if (head === 'nonessential') return `${classNamed(tail)}, fusable`;
  if (head === 'exposed_copy') return `copies, ${tail || 'all'}`;
  if (head === 'host') return tail === 'runtime' ? 'runtime between operators' : `host: ${tail}`;
  return barMeanings[head] ?? id;
}

export const componentNames = {
  weights: 'weights',
  kv_cache: 'KV cache',
  activations: 'activations',
  runtime: 'runtime',
  residual: 'residual',
} as const;

export const memoryPointNames = {
  baseline: 'baseline',
  post_warmup: 'after warm-up',
  peak: 'peak',
} as const;

const metricNames: Record<string, string> = {
  utilization_percent: 'utilisation',
  clock_mhz: 'clock',
  rss_bytes: 'resident memory',
  power_w: 'power',
  temperature_c: 'temperature',
};

/** A telemetry metric in words: its table name without the unit, which stands beside it. */
export function metricName(metric: string): string {
  return metricNames[metric] ?? metric.replaceAll('_', ' ');
}

export function layerName(layer: number | null): string {
  return layer === null ? 'outside layers' : `layer ${layer}`;
}
