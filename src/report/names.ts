import { classLabels } from '../vocabulary/op-classes.js';

const classNamed = (name: string): string => (classLabels as Record<string, string>)[name] ?? name;

const barNames: Record<string, [label: string, meaning: string]> = {
  roofline: ['roofline', 'what the hardware allows'],
  serial: ['no overlap', 'operators run one after another: neither compute nor memory is busy all the time'],
  exposed_comm: ['communication', 'waiting for exposed communication'],
  launch_latency: ['launch latency', 'device start-up of launches'],
  launch_overhead: ['launching operators', 'launching operators'],
  synchronization: ['synchronisation', 'waiting in a synchronise'],
  device_dependency: ['device dependency', 'device waits for itself'],
  unattributed: ['not explained', 'operators took another time in the profiled pass than in the clean one'],
  profiler_overhead: ['profiler', 'added by the profiler'],
};

const hostNames: Record<string, [label: string, meaning: string]> = {
  runtime: ['runtime', 'runtime between operators'],
  runtime_dispatch: [
    'between operators',
    'the runtime between two operators: choosing and starting the next',
  ],
  runtime_call: ['call into the runtime', 'before the first and after the last operator: inputs, outputs'],
  sampling: ['sampling', 'choosing the next token, on the host'],
  loop: ['generation loop', 'the loop around the calls, on the host'],
  start_up: ['host, before any device work', 'the program had not begun to use the device'],
  shut_down: ['host, after the last device work', 'the device had nothing more to do'],
};

/** Two to four words for a chart's axis and a terminal's first column. */
export function barLabel(id: string): string {
  const [head = '', ...rest] = id.split('.');
  const tail = rest.join('.');
  if (head === 'inefficiency') return `${classNamed(tail)} over roof`;
  if (head === 'nonessential') return `${classNamed(tail)}, fusable`;
  if (head === 'exposed_copy') return `copies ${tail}`.trim();
  if (head === 'host') return hostNames[tail]?.[0] ?? `host: ${tail.replaceAll('_', ' ')}`;
  return barNames[head]?.[0] ?? id.replaceAll('_', ' ');
}

/** What a waterfall bar id (docs/measurement.md) means. */
export function barMeaning(id: string): string {
  const [head = '', ...rest] = id.split('.');
  const tail = rest.join('.');
  if (head === 'inefficiency') return `time of ${classNamed(tail)} beyond what its roofline allows`;
  if (head === 'nonessential') return `${classNamed(tail)} that a fused implementation would not run`;
  if (head === 'exposed_copy') return `exposed copies, ${tail || 'all'}`;
  if (head === 'host') return hostNames[tail]?.[1] ?? `on the host: ${tail.replaceAll('_', ' ')}`;
  return barNames[head]?.[1] ?? id.replaceAll('_', ' ');
}

export const componentNames = {
  weights: 'weights',
  kv_cache: 'KV cache',
  activations: 'activations',
  runtime: 'runtime and mapped files',
  residual: 'not itemised',
} as const;

export function layerName(layer: number | null): string {
  return layer === null ? 'outside layers' : `layer ${layer}`;
}
