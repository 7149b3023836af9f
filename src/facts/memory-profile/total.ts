import type { Issue } from '../../model/document.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import type { MeasuredTotal } from './breakdown.js';
import { processBytes, type MemoryPoints } from './points.js';
import { highest, recordedRows, type MemoryRows } from './rows.js';
import { formatGb } from '../../vocabulary/format.js';

interface TotalFacts {
  gpus: readonly number[];
  /** Process ids of the engine. */
  enginePids: ReadonlySet<number>;
  points: MemoryPoints;
}

/** A driver and a display use less than this before the launch. */
const maxIdleBytes = 2 ** 30;
/**
 * A context with its kernels and NCCL's buffers use less than this (0.7 and 0.9 GB on an H200). More belongs to another
 * process.
 */
const maxOwnOutsideBytes = 3e9;
/** Maximum time between records that torch writes together. */
const sameMomentNs = 50e6;

/**
 * Memory of the run at its peak. On exclusive GPUs: peak − baseline, sampled 20 times per second. On shared GPUs, and for
 * a running server: its processes as the driver lists them once per second; if it lists none, peak − baseline, or the
 * peak itself for a server. On the host: its processes. Null if not sampled.
 */
export function measureTotal(rows: MemoryRows, plan: MemoryPlan, facts: TotalFacts): MeasuredTotal | null {
  const { gpus, enginePids, points } = facts;
  const { baseline, peak } = points;
  if (gpus.length === 0) {
    const { total_bytes: bytes, source } = peak;
    if (bytes === null) return null;
    return { bytes, source: source ?? 'its processes', shared: false, listed: false, othersStarted: false };
  }
  const otherProcesses = otherProcessesOf(rows, plan, facts);
  const shared = otherProcesses.length > 0;
  const othersStarted = otherProcesses.some(({ before }) => !before);
  // A server ran before, so its weights are in the baseline.
  const server = plan.where === 'url';
  // In a container the owner of a new process is unknown.
  const hasUnknown = otherProcesses.some(({ pid }) => pid === null);
  if ((shared && !hasUnknown) || server) {
    const listed = gpus.map((gpu) => processBytes(rows, gpu, enginePids, highest));
    if (listed.every((bytes) => bytes !== null)) {
      const bytes = listed.reduce<number>((sum, value) => sum + value, 0);
      const source = 'peak of its own processes as listed by the driver';
      return { bytes, source, shared: false, listed: true, othersStarted };
    }
  }
  if (peak.total_bytes === null || baseline.total_bytes === null) return null;
  const deviceFlags = { shared, listed: false, othersStarted };
  if (server)
    return { bytes: peak.total_bytes, source: `${peak.source} at the peak, all processes`, ...deviceFlags };
  const bytes = peak.total_bytes - baseline.total_bytes;
  return { bytes, source: `${peak.source}: peak − baseline`, ...deviceFlags };
}

interface OtherProcess {
  gpu: number;
  pid: number | null;
  name: string | null;
  bytes: number | null;
  /** It ran before the launch. */
  before: boolean;
}

/** Other processes on the run's GPUs, before or during the run. */
function otherProcessesOf(
  rows: MemoryRows,
  plan: MemoryPlan,
  { gpus, enginePids, points }: TotalFacts,
): OtherProcess[] {
  const processByKey = new Map<string, OtherProcess>();
  for (const { gpu, pid, name, used_bytes } of plan.others_before)
    if (gpus.includes(gpu))
      processByKey.set(`${gpu} ${pid}`, { gpu, pid, name, bytes: used_bytes, before: true });
  for (const { gpu, pid, samples } of rows.processes) {
    if (!gpus.includes(gpu) || enginePids.has(pid) || processByKey.has(`${gpu} ${pid}`)) continue;
    const before = samples[0]!.t_ns <= plan.launch_ns;
    processByKey.set(`${gpu} ${pid}`, { gpu, pid, name: null, bytes: samples.at(-1)?.bytes ?? null, before });
  }
  for (const { gpu, used_bytes } of points.baseline.per_gpu_details) {
    const hasProcess = [...processByKey.values()].some((process) => process.gpu === gpu);
    if (!hasProcess && (used_bytes ?? 0) > maxIdleBytes)
      processByKey.set(`${gpu}`, { gpu, pid: null, name: null, bytes: used_bytes, before: true });
  }
  for (const gpu of gpus) {
    const hasProcess = [...processByKey.values()].some((process) => process.gpu === gpu);
    if (!hasProcess && outsideAllocator(rows, gpu, points) > maxOwnOutsideBytes)
      processByKey.set(`${gpu}`, { gpu, pid: null, name: null, bytes: null, before: false });
  }
  return [...processByKey.values()];
}

/** Largest driver memory outside torch's reserve and the baseline, at a moment when torch reported both. */
function outsideAllocator({ recorded }: MemoryRows, gpu: number, { baseline }: MemoryPoints): number {
  const before = baseline.per_gpu_details.find((detail) => detail.gpu === gpu)?.used_bytes ?? 0;
  const used = recordedRows(recorded, { what: 'device_used', device: gpu });
  if (new Set(used.map(({ rank }) => rank)).size !== 1) return 0;
  const reserved = recordedRows(recorded, { what: 'reserved', device: gpu });
  return used.reduce((maxBytes, { stage, t_ns, bytes }) => {
    const reservedRow = reserved.find(
      (row) => row.stage === stage && Math.abs(row.t_ns - t_ns) < sameMomentNs,
    );
    return reservedRow ? Math.max(maxBytes, bytes - reservedRow.bytes - before) : maxBytes;
  }, 0);
}

/** Warns that other processes use a GPU during the run: its figures include them. */
export function otherProcessIssues(rows: MemoryRows, plan: MemoryPlan, facts: TotalFacts): Issue[] {
  return otherProcessesOf(rows, plan, facts).map(({ gpu, pid, name, bytes }) => {
    const processNames =
      pid === null ? 'a process that is not visible from here' : `${name ?? 'a process'} (pid ${pid})`;
    const usedText = bytes === null ? '' : `, ${formatGb(bytes)}`;
    const text = `GPU ${gpu} was also used by ${processNames}${usedText}: figures of the whole GPU include it.`;
    return { code: 'gpu_shared', severity: 'warning', text };
  });
}
