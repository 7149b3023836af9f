import type { BenchPointResult } from '../../model/documents/bench.js';
import type { MissingFigure } from '../../model/figure.js';
import type { StageHost } from './bench-host.js';
import type { NecessaryTime } from './necessary.js';
import type { Part } from './split.js';
import { formatCount, formatMs, formatQuantity, plural, formatNs } from '../../vocabulary/format.js';

export interface BenchTimes {
  kind: 'prefill' | 'decode';
  measuredMs: number;
  necessary: NecessaryTime | MissingFigure;
  /** Kernel and busy time of the profiled repeat; null if none was profiled. */
  kernelMs: number | null;
  busyMs: number | null;
  kernels: number | null;
  host: StageHost | null;
  /** Compute threads of the engine; null on a GPU. */
  threads: number | null;
  onCpu: boolean;
  /** Time between two nodes of a replayed CUDA graph, ns; null without graphs. */
  nodeNs: number | null;
  machine: Pick<BenchPointResult['machine'], 'cpu_cores_busy' | 'gpu_utilization_percent'>;
  /** Share of the repeat spent decoding. Samples cover the whole repeat. */
  decodeShare: number | null;
}

interface BenchParts {
  parts: Part[];
  /** How a bar was computed, for bars that are not a sum of intervals. */
  notes: Map<string, string>;
}

/** Share of a stage by which two consecutive time stamps may differ. */
const maxStampDifference = 1e-3;

/** Minimum decode share of a repeat for its sampled mean to describe decode steps. */
const minDecodeShare = 0.8;

/**
 * Bars of a mean stage of a benchmark, without `unattributed`: the roofline, kernels if they were profiled, and host
 * and idle time from time stamps, device events, launch counts and samples.
 */
export function benchParts(times: BenchTimes): BenchParts {
  const notes = new Map<string, string>();
  const device = times.onCpu ? cpuParts(times, notes) : gpuParts(times, notes);
  return { parts: [...device, ...loopParts(times)].filter(({ ms }) => ms !== 0), notes };
}

/** Host time around the engine's call; empty without host times of the same instances. */
function loopParts({ host, measuredMs }: BenchTimes): Part[] {
  if (!host) return [];
  const loop = measuredMs - host.callMs - host.samplingMs;
  return [
    { id: 'host.sampling', ms: host.samplingMs },
    // The first token may be stamped just before the call returns.
    { id: 'host.loop', ms: loop < 1e-9 * measuredMs && loop > -maxStampDifference * measuredMs ? 0 : loop },
  ];
}

/** Time of all operations one after the other. A step does not include sampling. */
const serialMs = ({ byClass }: NecessaryTime): number =>
  [...byClass].reduce((sum, [name, ms]) => sum + (name === 'sampling' ? 0 : ms), 0);

function kernelBars(necessary: BenchTimes['necessary'], kernelMs: number | null): Part[] {
  if ('reason' in necessary) return kernelMs === null ? [] : [{ id: 'kernels.kernels', ms: kernelMs }];
  const needed = serialMs(necessary);
  return [
    { id: 'roofline', ms: necessary.rooflineMs },
    { id: 'serial', ms: needed - necessary.rooflineMs },
    ...(kernelMs === null ? [] : [{ id: 'inefficiency.kernels', ms: kernelMs - needed }]),
  ];
}

function gpuParts(times: BenchTimes, notes: Map<string, string>): Part[] {
  const { necessary, kernelMs, host, measuredMs } = times;
  const busyMs = times.busyMs ?? sampledBusyMs(times, notes);
  // Kernels on concurrent streams can sum to more than the busy time.
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
  if (busyMs !== null) parts.push(...idleParts(times, (deviceMs ?? callMs) - busyMs, notes));
  return parts;
}

/** Idle time of the device within a step. */
function idleParts(
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
  const computingShare = Math.min(1, cores);
  const perKernelText =
    kernels === null || kernels === 0
      ? ''
      : `; ${formatCount(kernels)} kernels, ${formatMs(idleMs / kernels)} of idle time each`;
  notes.set(
    'host.dispatch',
    `the device is idle for ${formatMs(idleMs)} of the step while ${formatCount(cores)} cores are busy in the process: this share is host time, computing or spinning${perKernelText}`,
  );
  return [{ id: 'host.dispatch', ms: idleMs * computingShare }];
}

/** Busy time from sampled GPU utilization (share of time with a running kernel). */
function sampledBusyMs(
  { kind, measuredMs, machine, decodeShare }: BenchTimes,
  notes: Map<string, string>,
): number | null {
  const { gpu_utilization_percent: used } = machine;
  if (kind !== 'decode' || used.value === null || (decodeShare ?? 0) < minDecodeShare) return null;
  const note = `the device's sampled utilization, ${formatQuantity(used.value, '%')}: the share of time with a running kernel`;
  for (const id of ['inefficiency.kernels', 'kernels.kernels']) notes.set(id, note);
  return (measuredMs * Math.min(100, used.value)) / 100;
}

/** On a CPU the engine's threads are the device. Idle time is the time for which they had no core. */
function cpuParts(times: BenchTimes, notes: Map<string, string>): Part[] {
  const { necessary, host, threads, machine, measuredMs } = times;
  const parts = kernelBars(necessary, null);
  const cores = machine.cpu_cores_busy.value;
  if (threads === null || cores === null || cores >= threads) return parts;
  const callMs = host?.callMs ?? measuredMs;
  const needed = 'reason' in necessary ? 0 : serialMs(necessary);
  const idle = Math.min(callMs * (1 - cores / threads), callMs - needed);
  if (!(idle > 0)) return parts;
  notes.set(
    'host.idle_cores',
    `${formatCount(cores)} of the engine's ${threads} threads had a core on average: the others waited for work, each other, or a core in use by another program`,
  );
  return [...parts, { id: 'host.idle_cores', ms: idle }];
}
