import type { Headline, TracePhase, TraceResult } from '../../model/documents/trace.js';
import { phaseTime } from '../../model/headline-time.js';
import {
  formatBytes,
  formatCount,
  formatNs,
  formatPercent,
  formatQuantity,
} from '../../vocabulary/format.js';
import { idleCauseLabel } from '../../vocabulary/idle-causes.js';
import { instanceWord } from '../../vocabulary/stages.js';
import { capital, listed } from '../../vocabulary/sentence.js';

type Parts = Pick<
  TraceResult,
  | 'source'
  | 'phases'
  | 'classes'
  | 'launches'
  | 'copies'
  | 'idle'
  | 'overlap'
  | 'operators'
  | 'short_kernels'
  | 'telemetry'
>;

/** An idle device that waits for launches: so many of them, so idle, so much of it on the way to the next kernel. */
export const launchBound = { launches: 100, idleShare: 0.3, ofIdle: 0.7 };

/** Whether launching is what keeps the device waiting in a mean instance. */
export function isLaunchBound({ idle_share, idle_ns, idle_by_cause, launches }: TracePhase): boolean {
  const onTheWay = new Set(['host', 'launch_overhead', 'launch_latency']);
  const ns = idle_by_cause.filter(({ id }) => onTheWay.has(id)).reduce((sum, one) => sum + one.ns, 0);
  return (
    launches >= launchBound.launches &&
    idle_share >= launchBound.idleShare &&
    ns >= launchBound.ofIdle * idle_ns
  );
}

/** Sentences for someone in a hurry: launches against layers, shares of the classes, idle time and its cause (A9). */
export function headlines(parts: Parts): Headline[] {
  if (!parts.source.gpu_used) return [...cpuLines(parts), ...operatorLine(parts)];
  const shown = parts.phases.filter(({ kind }) => shownPhases.includes(kind));
  // A decode step is what a served model does all day: it comes first.
  const ordered = shown.toSorted((a, b) => rank(a) - rank(b));
  return [
    ...ordered.flatMap((phase) => [
      ...idleLines(phase, parts),
      ...launchLine(phase, parts),
      ...classLine(phase, parts),
      ...shortLine(phase, parts),
      ...batchLine(phase),
    ]),
    ...outsideLine(parts),
    ...operatorLine(parts),
    ...copyLines(parts),
    ...overlapLine(parts),
    ...(parts.telemetry?.events ?? []).slice(0, 3).map((event) => line('throttling', null, event.text)),
  ];
}

function cpuLines({ phases }: Parts): Headline[] {
  const text = 'No GPU was used in this capture.';
  const passes = phases.filter(({ kind }) => ['prefill', 'decode', 'mixed'].includes(kind));
  const times = passes.map((phase) => `${instanceWord(phase.kind)} takes ${timeWords(phase)}`);
  return [
    line('no_gpu', null, text),
    ...(times.length > 0 ? [line('cpu_phases', null, `${capital(listed(times))}.`)] : []),
  ];
}

const shownPhases: readonly string[] = ['decode', 'mixed', 'prefill', 'other', 'outside'];
const rank = ({ kind }: TracePhase): number => shownPhases.indexOf(kind);

function line(id: string, phase: Headline['phase'], text: string, atStakeNs: number | null = null): Headline {
  return { id, phase, text, at_stake_ms: atStakeNs === null ? null : atStakeNs / 1e6 };
}

function idleLines(phase: TracePhase, { idle }: Parts): Headline[] {
  const { kind, wall, idle_ns, idle_share, idle_by_cause, busy_ns } = phase;
  // A slow first instance pulls the mean: the reader must see that it is not the usual one.
  const skewed = phaseTime(phase).profiled && Math.abs(wall.median_ns - wall.mean_ns) > 0.15 * wall.mean_ns;
  const skew = skewed ? ` (median ${formatNs(wall.median_ns)})` : '';
  const how = `the GPU is busy for ${formatNs(busy_ns)} of ${timeWords(phase)}${skew} and idle for ${formatPercent(idle_share)}`;
  const text = isLaunchBound(phase)
    ? `${capital(instanceWord(kind))} is launch-bound: ${how}, waiting for the host to launch the next kernel.`
    : `${capital(how)} of ${instanceWord(kind)}.`;
  if (idle_ns <= 0 || idle_by_cause.length === 0) return [line('idle', kind, text, idle_ns)];
  const parts = idle_by_cause
    .filter(({ ns }, index) => index === 0 || ns >= 0.1 * idle_ns)
    .slice(0, 3)
    .map(
      ({ id, ns }, index) =>
        `${formatPercent(ns / idle_ns)} ${index === 0 ? 'is ' : ''}${idleCauseLabel(id)}${callOf(idle, kind, id)}`,
    );
  const causes = `Idle time ${formatNs(idle_ns)}: ${listed(parts)}.`;
  return [line('idle', kind, text, idle_ns), line('idle_causes', kind, causes), ...profilerLine(phase)];
}

/** What the profiler added is in none of the other sentences. */
function profilerLine(phase: TracePhase): Headline[] {
  const { kind, wall } = phase;
  const ns = 1e6 * phaseTime(phase).ms;
  if (ns > 0.95 * wall.mean_ns) return [];
  const text = `Under the profiler ${instanceWord(kind)} takes ${formatNs(wall.mean_ns)}: ${formatNs(wall.mean_ns - ns)} more, with the GPU idle.`;
  return [line('profiler_overhead', kind, text)];
}

/** "5.88 ms", "9.03 ms under the profiler". */
function timeWords(phase: TracePhase): string {
  const { ms, profiled } = phaseTime(phase);
  return `${formatNs(1e6 * ms)}${profiled ? ' under the profiler' : ''}`;
}

/** " (cudaGraphLaunch)": the call behind the largest wait of this cause, where it is not the plain launch. */
function callOf(idle: Parts['idle'], kind: string, cause: string): string {
  const name = idle.waits.find((wait) => wait.phase === kind && wait.cause === cause)?.api_name;
  const plain = /^(cuda|hip|cu)(Launch|ModuleLaunch)Kernel/;
  return name && cause !== 'host' && !plain.test(name) ? ` (${name})` : '';
}

function launchLine(phase: TracePhase, { launches }: Parts): Headline[] {
  if (phase.kernels === 0) return [];
  const own = launches.phases.find(({ kind }) => kind === phase.kind);
  const graphs =
    own && own.graph_launches > 0
      ? `, ${formatCount(own.graph_launches)} of them ${own.graph_launches === 1 ? 'a CUDA graph' : 'CUDA graphs'}`
      : '';
  const perLayer = own?.launches_per_layer.value ?? null;
  const layers =
    perLayer === null || launches.layers.value === null
      ? '' // The model is not known: no layers to set it against.
      : perLayer < 1
        ? ` (${launches.layers.value} layers)`
        : `: ${formatCount(perLayer)} launches for each of ${launches.layers.value} layers`;
  const every = (1e6 * phaseTime(phase).ms) / phase.launches;
  const pace = isLaunchBound(phase)
    ? `${layers ? ',' : ':'} one every ${formatNs(every)}, while a kernel takes ${formatNs(phase.kernel_ns / phase.kernels)}`
    : '';
  const text = `${capital(instanceWord(phase.kind))} runs ${formatCount(phase.kernels)} kernels from ${formatCount(phase.launches)} launches${graphs}${layers}${pace}.`;
  return [line('launches_per_layer', phase.kind, text)];
}

/** A mean over mixed batch sizes is meaningless, so report each. */
function batchLine({ kind, by_batch: sizes }: TracePhase): Headline[] {
  if (sizes.length < 2) return [];
  const each = sizes.map(
    ({ batch_size, idle_share, ...size }) =>
      `batch ${batch_size} ${formatNs(1e6 * phaseTime(size).ms)} (${formatPercent(idle_share)} idle)`,
  );
  const text = `The means cover ${sizes.length} batch sizes of ${instanceWord(kind)}: ${listed(each)}.`;
  return [line('batch_sizes', kind, text)];
}

/** Work that no phase holds is in no phase's figures. */
function outsideLine({ phases, classes }: Parts): Headline[] {
  if (phases.some(({ kind }) => kind === 'outside')) return [];
  const timeOf = (kind: string | null) =>
    classes.find((one) => one.kind === kind)?.rows.reduce((sum, { total_ns }) => sum + total_ns, 0) ?? 0;
  const [total, outside] = [timeOf(null), timeOf('outside')];
  if (total === 0 || outside < 0.05 * total) return [];
  const text = `${formatPercent(outside / total)} of kernel time is outside all marked phases and not included in their figures.`;
  return [line('outside_phases', null, text)];
}

function classLine(phase: TracePhase, { classes }: Parts): Headline[] {
  const rows = classes.find(({ kind }) => kind === phase.kind)?.rows ?? [];
  if (rows.length === 0) return [];
  const share = (name: string) => rows.find((row) => row.class === name)?.share ?? 0;
  if (share('graph') > 0.5) {
    const text = `${capital(instanceWord(phase.kind))} was recorded as whole CUDA graphs: their kernels are not known. Capture again with graph nodes.`;
    return [line('graphs_opaque', phase.kind, text)];
  }
  const overhead = share('elementwise') + share('copy');
  const total = rows.reduce((sum, row) => sum + row.per_instance_ns, 0);
  const text = `Kernel time ${formatNs(total)}: GEMM takes ${formatPercent(share('gemm'))}, attention ${formatPercent(share('attention'))}, elementwise and layout copies ${formatPercent(overhead)} (${instanceWord(phase.kind)}).`;
  return [line('class_shares', phase.kind, text, total)];
}

function shortLine(phase: TracePhase, { short_kernels }: Parts): Headline[] {
  const own = short_kernels.phases.find(({ kind }) => kind === phase.kind);
  if (!own || own.count_share < 0.5) return [];
  const text = `${formatPercent(own.count_share)} of the kernels of ${instanceWord(phase.kind)} are shorter than ${formatNs(short_kernels.threshold_ns)} and take ${formatPercent(own.time_share)} of its kernel time.`;
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
    const speed = rate === null ? '' : ` at ${formatQuantity(rate, 'B/s')}`;
    const where = copy.kind === 'DtoH' ? 'to' : 'from';
    const text = `${copy.count} ${copy.kind} copies ${where} pageable memory moved ${formatBytes(copy.bytes)}${speed}: pinned memory is faster and can overlap with computation.`;
    return line('copies', null, text, copy.total_ns);
  });
}

function overlapLine({ overlap }: Parts): Headline[] {
  if (!overlap.serialised && overlap.comm_ns === 0) return [];
  return [line('overlap', null, overlap.text)];
}
