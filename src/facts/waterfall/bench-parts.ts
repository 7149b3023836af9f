import type { BenchPointResult } from '../../model/documents/bench.js';
import type { MissingFigure } from '../../model/figure.js';
import type { StageHost } from './bench-host.js';
import type { Necessary } from './necessary.js';
import type { Part } from './split.js';
import { formatCount, formatMs, formatQuantity, plural, formatNs } from '../../vocabulary/format.js';

export interface BenchTimes {
  kind: 'prefill' | 'decode';
  measuredMs: number;
  necessary: Necessary | MissingFigure;
  /** Kernels and busy time of the watched repeat; null where nothing was watched. */
  kernelMs: number | null;
  busyMs: number | null;
  kernels: number | null;
  host: StageHost | null;
  /** Threads that the engine computes with; null on a GPU. */
  threads: number | null;
  onCpu: boolean;
  /** From node to node of a replayed CUDA graph, where the steps are such, ns. */
  nodeNs: number | null;
  machine: Pick<BenchPointResult['machine'], 'cpu_cores_busy' | 'gpu_utilization_percent'>;
  /** Of the repeat's time that is decoding: what was sampled is of both. */
  decodeShare: number | null;
}

interface BenchParts {
  parts: Part[];
  /** What a bar rests on, where that is not a sum of intervals. */
  notes: Map<string, string>;
}

/** Of a stage: stamps that are taken one after the other differ by less. */
const stampShare = 1e-3;

/** Of the repeat: below it a sampled mean is not one of decode steps. */
const mostlyDecode = 0.8;

/**
 * Bars of a mean stage of a benchmark but for `unattributed`: the roofline and kernels where they were watched, and of the
 * rest what time stamps, device events, launch counts and samples tell.
 */
export function benchParts(times: BenchTimes): BenchParts {
  const notes = new Map<string, string>();
  const device = times.onCpu ? cpuParts(times, notes) : gpuParts(times, notes);
  return { parts: [...device, ...loopParts(times)].filter(({ ms }) => ms !== 0), notes };
}

/** Host time around the engine's call; nothing where the stages are not of the same instances. */
function loopParts({ host, measuredMs }: BenchTimes): Part[] {
  if (!host) return [];
  const loop = measuredMs - host.callMs - host.samplingMs;
  return [
    { id: 'host.sampling', ms: host.samplingMs },
    // The stamp of the first token may be taken a moment before the call's own end.
    { id: 'host.loop', ms: loop < 1e-9 * measuredMs && loop > -stampShare * measuredMs ? 0 : loop },
  ];
}

const oneByOneMs = ({ byClass }: Necessary): number =>
  [...byClass].reduce((sum, [name, ms]) => sum + (name === 'sampling' ? 0 : ms), 0);

function kernelBars(necessary: BenchTimes['necessary'], kernelMs: number | null): Part[] {
  if ('reason' in necessary) return kernelMs === null ? [] : [{ id: 'kernels.kernels', ms: kernelMs }];
  const needed = oneByOneMs(necessary);
  return [
    { id: 'roofline', ms: necessary.rooflineMs },
    { id: 'serial', ms: needed - necessary.rooflineMs },
    ...(kernelMs === null ? [] : [{ id: 'inefficiency.kernels', ms: kernelMs - needed }]),
  ];
}

function gpuParts(times: BenchTimes, notes: Map<string, string>): Part[] {
  const { necessary, kernelMs, host, measuredMs } = times;
  const busyMs = times.busyMs ?? sampledBusyMs(times, notes);
  // Kernels of several streams at once take longer together than the device is busy.
  const kernels = kernelMs === null ? busyMs : busyMs === null ? kernelMs : Math.min(kernelMs, busyMs);
  const parts = kernelBars(necessary, kernels);
  if (kernels !== null && busyMs !== null && busyMs > kernels) {
    parts.push({ id: 'exposed_copy.all', ms: busyMs - kernels });
  }
  const callMs = host?.callMs ?? measuredMs;
  const deviceMs = host?.deviceMs ?? null;
  if (deviceMs !== null && callMs > deviceMs) {
    parts.push({ id: 'host.program', ms: callMs - deviceMs });
    notes.set('host.program', 'the call minus the time between device events around its work');
  }
  if (busyMs !== null) parts.push(...insideParts(times, (deviceMs ?? callMs) - busyMs, notes));
  return parts;
}

/** Time of a step in which its device has nothing to do. */
function insideParts(
  { kernels, nodeNs, machine }: BenchTimes,
  idleMs: number,
  notes: Map<string, string>,
): Part[] {
  if (!(idleMs > 0)) return [];
  if (nodeNs !== null && kernels !== null) {
    const latency = Math.min(idleMs, (kernels * nodeNs) / 1e6);
    notes.set(
      'launch_latency',
      `${plural(kernels, 'node')} of a replayed graph, ${formatNs(nodeNs)} each (measured on this GPU)`,
    );
    return [{ id: 'launch_latency', ms: latency }];
  }
  const cores = machine.cpu_cores_busy.value;
  if (cores === null) return [];
  const computing = Math.min(1, cores);
  const each =
    kernels === null || kernels === 0
      ? ''
      : `; ${formatCount(kernels)} kernels, ${formatMs(idleMs / kernels)} of idle time each`;
  notes.set(
    'host.dispatch',
    `the device is idle for ${formatMs(idleMs)} of the step while ${formatCount(cores)} cores are busy in the process: this share is host time, computing or spinning${each}`,
  );
  return [{ id: 'host.dispatch', ms: idleMs * computing }];
}

/** By the sampled utilization, which is the share of time in which some kernel ran. */
function sampledBusyMs(
  { kind, measuredMs, machine, decodeShare }: BenchTimes,
  notes: Map<string, string>,
): number | null {
  const { gpu_utilization_percent: used } = machine;
  if (kind !== 'decode' || used.value === null || (decodeShare ?? 0) < mostlyDecode) return null;
  const text = `the device's sampled utilization, ${formatQuantity(used.value, '%')}: the share of time with a running kernel`;
  for (const id of ['inefficiency.kernels', 'kernels.kernels']) notes.set(id, text);
  return (measuredMs * Math.min(100, used.value)) / 100;
}

/** On a CPU the engine's own threads are the device: cores of theirs without work are idle time. */
function cpuParts(times: BenchTimes, notes: Map<string, string>): Part[] {
  const { necessary, host, threads, machine, measuredMs } = times;
  const parts = kernelBars(necessary, null);
  const cores = machine.cpu_cores_busy.value;
  if (threads === null || cores === null || cores >= threads) return parts;
  const callMs = host?.callMs ?? measuredMs;
  const needed = 'reason' in necessary ? 0 : oneByOneMs(necessary);
  const idle = Math.min(callMs * (1 - cores / threads), callMs - needed);
  if (!(idle > 0)) return parts;
  notes.set(
    'host.idle_cores',
    `${formatCount(cores)} of the engine's ${threads} threads had a core on average: the others waited for work, each other, or a core in use by another program`,
  );
  return [...parts, { id: 'host.idle_cores', ms: idle }];
}
