import type { Headline, TracePhase, TraceResult } from '../../model/documents/trace.js';
import { formatNs, formatRate, formatShare } from './words.js';

type Parts = Pick<
  TraceResult,
  'phases' | 'classes' | 'launches' | 'copies' | 'overlap' | 'operators' | 'short_kernels' | 'telemetry'
>;

const causeWords: Record<string, string> = {
  synchronization: 'the host waits in a synchronising call',
  host: 'the host has not got to the next launch yet',
  launch_overhead: 'the host is inside the launch call',
  launch_latency: 'launch latency of the device',
  device_dependency: 'work queued behind other work',
  unattributed: 'no launch is known for what follows',
};

/** What an idle device waits for, in words. */
export function causeText(id: string): string {
  return causeWords[id.split('.')[0] ?? id] ?? id;
}

const named = (kind: string): string =>
  ({ decode: 'a decode step', mixed: 'a mixed step', prefill: 'a prefill', outside: 'the whole capture' })[
    kind
  ] ?? kind;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Sentences for someone in a hurry: launches against layers, shares of the classes, idle time and its cause (A9). */
export function headlines(parts: Parts): Headline[] {
  const told = parts.phases.filter(({ kind }) => ['decode', 'mixed', 'prefill', 'outside'].includes(kind));
  // A decode step is what a served model does all day: it comes first.
  const ordered = told.toSorted((a, b) => rank(a) - rank(b));
  return [
    ...ordered.flatMap((phase) => [
      ...idleLine(phase),
      ...launchLine(phase, parts),
      ...classLine(phase, parts),
      ...shortLine(phase, parts),
    ]),
    ...operatorLine(parts),
    ...copyLines(parts),
    ...overlapLine(parts),
    ...(parts.telemetry?.events ?? []).slice(0, 3).map((event) => line('throttling', null, event.text)),
  ];
}

const rank = ({ kind }: TracePhase): number => ['decode', 'mixed', 'prefill', 'outside'].indexOf(kind);

function line(id: string, phase: Headline['phase'], text: string, atStakeNs: number | null = null): Headline {
  return { id, phase, text, at_stake_ms: atStakeNs === null ? null : atStakeNs / 1e6 };
}

function idleLine(phase: TracePhase): Headline[] {
  const { wall, idle_ns, idle_share, idle_by_cause } = phase;
  const [first] = idle_by_cause;
  // A slow first instance pulls the mean: the reader must see that it is not the usual one.
  const skewed = Math.abs(wall.median_ns - wall.mean_ns) > 0.15 * wall.mean_ns;
  const skew = skewed ? ` (median ${formatNs(wall.median_ns)})` : '';
  const cause = first
    ? `; ${formatShare(first.ns / idle_ns)} of that: ${causeText(first.id)} (${first.id})`
    : '';
  const text = `The GPU is idle ${formatShare(idle_share)} of ${named(phase.kind)}: ${formatNs(idle_ns)} of ${formatNs(wall.mean_ns)}${skew}${cause}.`;
  return [line('idle', phase.kind, text, idle_ns)];
}

function launchLine(phase: TracePhase, { launches }: Parts): Headline[] {
  if (phase.kernels === 0) return [];
  const own = launches.phases.find(({ kind }) => kind === phase.kind);
  const graphs =
    own && own.graph_launches > 0 ? `, ${formatRate(own.graph_launches)} of them CUDA graphs` : '';
  const layers = launches.layers.value;
  const perLayer =
    layers === null
      ? '' // The model is not known: no layers to set it against.
      : ` on ${layers} layers: ${formatRate(phase.launches / layers)} launches a layer`;
  const text = `${capital(named(phase.kind))} runs ${formatRate(phase.kernels)} kernels from ${formatRate(phase.launches)} launches${graphs}${perLayer}.`;
  return [line('launches_per_layer', phase.kind, text)];
}

function classLine(phase: TracePhase, { classes }: Parts): Headline[] {
  const rows = classes.find(({ kind }) => kind === phase.kind)?.rows ?? [];
  if (rows.length === 0) return [];
  const share = (name: string) => rows.find((row) => row.class === name)?.share ?? 0;
  if (share('graph') > 0.5) {
    const text = `${capital(named(phase.kind))} was recorded as whole CUDA graphs: what runs in them is not known. Capture again with graph nodes.`;
    return [line('graphs_opaque', phase.kind, text)];
  }
  const overhead = share('elementwise') + share('copy');
  const text = `Of ${formatNs(phase.kernel_ns)} in kernels, GEMM takes ${formatShare(share('gemm'))}, attention ${formatShare(share('attention'))}, elementwise and layout copies ${formatShare(overhead)} (${named(phase.kind)}).`;
  return [line('class_shares', phase.kind, text, phase.kernel_ns)];
}

function shortLine(phase: TracePhase, { short_kernels }: Parts): Headline[] {
  const own = short_kernels.phases.find(({ kind }) => kind === phase.kind);
  if (!own || own.count_share < 0.5) return [];
  const text = `${formatShare(own.count_share)} of the kernels of ${named(phase.kind)} are shorter than ${formatNs(short_kernels.threshold_ns)} and take ${formatShare(own.time_share)} of its kernel time.`;
  return [line('short_kernels', phase.kind, text)];
}

function operatorLine({ operators }: Parts): Headline[] {
  return operators?.text ? [line('operators', operators.phase, operators.text)] : [];
}

function copyLines({ copies }: Parts): Headline[] {
  const whole = copies.filter(({ phase, kind }) => phase === null && kind !== 'memset' && kind !== 'DtoD');
  const pageable = whole.filter(({ memory, bytes }) => memory === 'pageable' && bytes >= 2 ** 20);
  return pageable.map((copy) => {
    const rate = copy.bandwidth_bytes_per_s.value;
    const speed = rate === null ? '' : ` at ${(rate / 1e9).toPrecision(3)} GB/s`;
    const text = `${copy.count} ${copy.kind} copies from pageable memory moved ${(copy.bytes / 2 ** 20).toPrecision(3)} MiB${speed}: pinned memory copies faster and beside computation.`;
    return line('copies', null, copy.kind === 'DtoH' ? text.replace('from', 'to') : text, copy.total_ns);
  });
}

function overlapLine({ overlap }: Parts): Headline[] {
  if (!overlap.serialised && overlap.comm_ns === 0) return [];
  return [line('overlap', null, overlap.text)];
}
