import type { MemoryPoint } from '../../model/documents/memory-profile.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import {
  tensorBytes,
  highest,
  isAfterFailure,
  quietSample,
  sampleAt,
  recordedRows,
  type MemoryRows,
  type Sample,
  type RecordedRow,
} from './rows.js';

type PointName = 'baseline' | 'post_warmup' | 'peak';

export interface MemoryPoints {
  baseline: MemoryPoint;
  post_warmup: MemoryPoint;
  peak: MemoryPoint;
  /** Reason for each missing point. */
  missing: Partial<Record<PointName, string>>;
}

/** A GPU counts as used if it grew by at least this much while the engine ran. */
const minGrowthBytes = 32 * 2 ** 20;
/** A GPU with this much in use before the first request may be the server's. */
const minServerBytes = 2 ** 30;

/**
 * GPUs of the run: named by the engine or listed by the driver for its processes. If neither names one: those that grew
 * in use, or, for a running server, that were in use.
 */
export function gpusOfRun(rows: MemoryRows, plan: MemoryPlan, enginePids: ReadonlySet<number>): number[] {
  const gpuIds = new Set<number>();
  for (const { device } of rows.recorded) if (device !== null) gpuIds.add(device);
  for (const { gpu, pid } of rows.processes) if (enginePids.has(pid)) gpuIds.add(gpu);
  if (gpuIds.size === 0 && plan.samples_here) {
    for (const [gpu, samples] of rows.used) {
      const before = sampleAt(samples, plan.launch_ns)?.bytes ?? 0;
      const peakBytes = highest(samplesOfRun(samples, plan))?.bytes ?? 0;
      if (peakBytes - before >= minGrowthBytes || (plan.where === 'url' && before >= minServerBytes))
        gpuIds.add(gpu);
    }
  }
  const reachable = plan.reachable_gpus;
  return [...gpuIds].filter((gpu) => reachable === null || reachable.includes(gpu)).sort((a, b) => a - b);
}

/**
 * Process ids of the engine as the driver numbers them. In a container these are the processes that appeared after the
 * start.
 */
export function ownPids(rows: MemoryRows, plan: MemoryPlan): Set<number> {
  const pids = new Set(plan.own_pids);
  const before = new Set(plan.others_before.map(({ pid }) => pid));
  const listed = rows.processes.map(({ pid }) => pid);
  if (plan.pid_namespace === 'initial' || listed.some((pid) => pids.has(pid))) return pids;
  return new Set(listed.filter((pid) => !before.has(pid)));
}

function samplesOfRun(samples: readonly Sample[], plan: MemoryPlan): Sample[] {
  return samples.filter(({ t_ns }) => t_ns >= plan.launch_ns && t_ns <= plan.ended_ns);
}

/** End of warm-up: as recorded by the engine, else the start of timing; null if the run did not get there. */
export function warmNs(rows: MemoryRows, plan: MemoryPlan): number | null {
  const endNs = warmupEndNs(rows, plan);
  return endNs === null || isAfterFailure(rows, endNs) ? null : endNs;
}

function warmupEndNs({ recorded, phases }: MemoryRows, plan: MemoryPlan): number | null {
  const warmTimes = recorded.filter(({ point }) => point === 'post_warmup').map(({ t_ns }) => t_ns);
  if (warmTimes.length > 0) return Math.max(...warmTimes);
  const timed = phases.find(({ label }) => label === 'timed');
  return timed?.start_ns ?? plan.phases.find(({ phase }) => phase === 'timed')?.t_ns ?? null;
}

/** Memory of the whole GPUs at the three points. The peak is the moment of the largest sum. */
export function gpuPoints(rows: MemoryRows, plan: MemoryPlan, gpus: readonly number[]): MemoryPoints {
  const memoryAt = (t_ns: number | null, sampleOf: (gpu: number) => Sample | null) =>
    gpuPoint(rows, plan, gpus, t_ns, sampleOf);
  const nearest = (t_ns: number) => (gpu: number) => sampleAt(rows.used.get(gpu) ?? [], t_ns);
  const warm = warmNs(rows, plan);
  const peak = peakNs(rows, plan, gpus);
  const noSample = () => null;
  const wasSampled = gpus.some((gpu) => (rows.used.get(gpu) ?? []).length > 0);
  const noSamples = 'no sample of its GPUs was taken';
  return {
    baseline: memoryAt(plan.launch_ns, nearest(plan.launch_ns)),
    post_warmup: memoryAt(
      warm,
      warm === null ? noSample : (gpu) => quietSample(rows.used.get(gpu) ?? [], warm),
    ),
    peak: memoryAt(peak, peak === null ? noSample : nearest(peak)),
    missing: {
      ...(wasSampled ? {} : { baseline: noSamples, post_warmup: noSamples }),
      ...(warm === null ? { post_warmup: notReached('the first timed repeat', plan) } : {}),
      ...(peak === null ? { peak: 'no sample was taken while the engine ran' } : {}),
    },
  };
}

function notReached(where: string, { failure }: MemoryPlan): string {
  return `the run stopped before ${where}${failure ? `: ${failure.what}` : ''}`;
}

function peakNs(rows: MemoryRows, plan: MemoryPlan, gpus: readonly number[]): number | null {
  const events = gpus
    .flatMap((gpu) => samplesOfRun(rows.used.get(gpu) ?? [], plan).map((sample) => ({ gpu, ...sample })))
    .sort((a, b) => a.t_ns - b.t_ns);
  const bytesByGpu = new Map<number, number>();
  for (const gpu of gpus) bytesByGpu.set(gpu, sampleAt(rows.used.get(gpu) ?? [], plan.launch_ns)?.bytes ?? 0);
  let maxBytes = -1;
  let timeNs: number | null = null;
  for (const { gpu, t_ns, bytes } of events) {
    bytesByGpu.set(gpu, bytes);
    const sum = [...bytesByGpu.values()].reduce((total, value) => total + value, 0);
    // GPUs are sampled in turn, so the last of several equal sums includes all of them.
    if (sum >= maxBytes) {
      maxBytes = sum;
      timeNs = t_ns;
    }
  }
  return timeNs;
}

function gpuPoint(
  rows: MemoryRows,
  plan: MemoryPlan,
  gpus: readonly number[],
  t_ns: number | null,
  sampleOf: (gpu: number) => Sample | null,
): MemoryPoint {
  const details = gpus.map((gpu) => {
    const facts = plan.gpus.find((facts) => facts.gpu === gpu);
    const used = sampleOf(gpu)?.bytes ?? null;
    const total = facts?.total_bytes ?? null;
    return {
      gpu,
      name: facts?.name ?? null,
      used_gb: gb(used),
      used_bytes: used,
      total_gb: gb(total),
      total_bytes: total,
    };
  });
  const values = details.flatMap(({ used_bytes }) => used_bytes ?? []);
  return {
    ...spread(values),
    per_gpu_details: details,
    t_s: t_ns === null ? null : t_ns / 1e9,
    source: values.length === 0 ? null : `${plan.sampler.source ?? rows.usedSource} device`,
  };
}

/** Sum, max, mean and population standard deviation, in 10^9 bytes; null without a value. */
function spread(
  values: readonly number[],
): Pick<
  MemoryPoint,
  | 'total_gb'
  | 'total_bytes'
  | 'max_gb'
  | 'max_bytes'
  | 'mean_gb'
  | 'mean_bytes'
  | 'stddev_gb'
  | 'stddev_bytes'
> {
  if (values.length === 0) {
    return {
      total_gb: null,
      total_bytes: null,
      max_gb: null,
      max_bytes: null,
      mean_gb: null,
      mean_bytes: null,
      stddev_gb: null,
      stddev_bytes: null,
    };
  }
  const total = values.reduce((sum, value) => sum + value, 0);
  const mean = total / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return {
    total_gb: total / 1e9,
    total_bytes: total,
    max_gb: Math.max(...values) / 1e9,
    max_bytes: Math.max(...values),
    mean_gb: mean / 1e9,
    mean_bytes: mean,
    stddev_gb: Math.sqrt(variance) / 1e9,
    stddev_bytes: Math.sqrt(variance),
  };
}

/** Host memory of the engine's processes: as they recorded it at the points, else as sampled. */
export function hostPoints(rows: MemoryRows, plan: MemoryPlan): MemoryPoints {
  const warm = warmNs(rows, plan);
  const samples = samplesOfRun(rows.rss, plan);
  const peakSample = highest(samples);
  const sampled = (t_ns: number | null) => (t_ns === null ? null : sampleAt(samples, t_ns));
  const recorded = (point: PointName) => sumOfRanks(rows.recorded.filter((row) => row.point === point));
  const recordedPeak = recorded('peak');
  // The kernel's peak counter is exact and covers only the engine. Samples also cover a process that was killed before
  // it reported.
  const peak =
    recordedPeak && plan.failure === null
      ? recordedPeak
      : peakSample && { ...peakSample, source: '/proc/<pid>/status VmRSS of its processes, sampled' };
  const first = samples[0] ?? null;
  const baseline =
    recorded('baseline') ?? (first && { ...first, source: '/proc/<pid>/status VmRSS, first sample' });
  const warmSample = sampled(warm);
  const warmReading =
    (warm === null ? null : recorded('post_warmup')) ??
    (warmSample && { ...warmSample, source: '/proc/<pid>/status VmRSS, sampled' });
  return {
    baseline: hostPoint(baseline),
    post_warmup: hostPoint(warmReading),
    peak: hostPoint(peak),
    missing: {
      ...(baseline ? {} : { baseline: 'no engine process was found' }),
      ...(warmReading ? {} : { post_warmup: notReached('the first timed repeat', plan) }),
      ...(peak ? {} : { peak: 'no engine process was found' }),
    },
  };
}

type Reading = (Sample & { source: string }) | null;

/** Ranks are separate processes, so their memory is summed. */
function sumOfRanks(recorded: readonly RecordedRow[]): Reading {
  const maxByRank = new Map<number, number>();
  for (const { rank, bytes } of recorded) maxByRank.set(rank, Math.max(maxByRank.get(rank) ?? 0, bytes));
  if (maxByRank.size === 0) return null;
  const bytes = [...maxByRank.values()].reduce((sum, value) => sum + value, 0);
  return { bytes, t_ns: Math.max(...recorded.map(({ t_ns }) => t_ns)), source: recorded[0]!.source };
}

function hostPoint(reading: Reading): MemoryPoint {
  return {
    ...spread(reading ? [reading.bytes] : []),
    per_gpu_details: [],
    t_s: reading ? reading.t_ns / 1e9 : null,
    source: reading?.source ?? null,
  };
}

export const gb = (bytes: number | null): number | null => (bytes === null ? null : bytes / 1e9);

/**
 * Bytes of the engine's processes on a GPU as the driver lists them: one sample of each, summed; null if it lists none.
 * The driver's list is read once per second.
 */
export function processBytes(
  { processes }: MemoryRows,
  gpu: number,
  enginePids: ReadonlySet<number>,
  sampleOf: (samples: readonly Sample[]) => Sample | null,
): number | null {
  const engineProcesses = processes.filter((process) => process.gpu === gpu && enginePids.has(process.pid));
  if (engineProcesses.length === 0) return null;
  return engineProcesses.reduce((sum, { samples }) => sum + (sampleOf(samples)?.bytes ?? 0), 0);
}

/** Whether the engine reported this GPU's allocator. */
export const hasAllocator = ({ recorded }: MemoryRows, gpu: number): boolean =>
  recordedRows(recorded, { what: 'reserved', device: gpu }).length > 0 &&
  tensorBytes(recorded, { what: 'weights', device: gpu }) !== null;
