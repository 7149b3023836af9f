import type { Issue } from '../model/document.js';
import { sentence, quantity } from '../vocabulary/sentence-template.js';
import type { Row } from '../model/tables.js';
import type { HostReading } from './host.js';
import { nsPerTick } from './proc-text.js';

export interface HostSample {
  /** CLOCK_MONOTONIC. */
  tNs: number;
  reading: HostReading;
}

/** /proc counts time in 10 ms ticks: over a second the load of other processes is accurate to a few hundredths of a core. */
const otherWindowNs = 1e9;

type Keys = Row<'telemetry'>;

/**
 * Rows of one recording, with times as sampled.
 * @param continues whether the first sample is the last sample of the previous part: then only the rates after it are new
 */
export function hostTelemetryRows(
  samples: HostSample[],
  otherProcesses: OtherLoad,
  keys: Keys,
  continues = false,
): Row<'telemetry'>[] {
  const rows: Row<'telemetry'>[] = [];
  for (const [index, { tNs, reading }] of samples.entries()) {
    const put = (scope: string, metric: string, value: number | null) => {
      if (value !== null && Number.isFinite(value)) rows.push({ ...keys, t_ns: tNs, scope, metric, value });
    };
    if (index === 0 && continues) continue;
    reading.clockMhz?.forEach((mhz, index) =>
      put(`cpu${reading.cores[index]?.id ?? index}`, 'clock_mhz', mhz),
    );
    put('process', 'rss_bytes', reading.tree?.memory?.rssBytes ?? null);
    const before = samples[index - 1];
    if (!before) continue;
    const load = hostLoad(before, { tNs, reading });
    load.perCore.forEach((percent, index) =>
      put(`cpu${reading.cores[index]!.id}`, 'utilization_percent', percent),
    );
    put('host', 'utilization_percent', load.percent);
    put('host', 'steal_percent', load.stealPercent);
    put('process', 'cores_busy', treeCores(before, { tNs, reading }));
    for (const [metric, ns] of Object.entries(reading.pressureNs)) {
      const earlier = before.reading.pressureNs[metric];
      if (earlier !== undefined && tNs > before.tNs)
        put('host', metric, Math.min(100, (100 * (ns - earlier)) / (tNs - before.tNs)));
    }
  }
  rows.push(...mainThreadRows(samples, keys));
  for (const { tNs, others: busy, inferscope: ownShare } of otherProcesses.windows) {
    rows.push({ ...keys, t_ns: tNs, scope: 'other_processes', metric: 'cores_busy', value: busy });
    rows.push({ ...keys, t_ns: tNs, scope: 'inferscope', metric: 'cores_busy', value: ownShare });
  }
  return rows;
}

/**
 * The kernel adds a wait when it ends. A wait longer than the interval started before it: its time is counted in the
 * intervals before, so that no thread waits for more than 100 % of the time.
 */
function mainThreadRows(samples: readonly HostSample[], keys: Keys): Row<'telemetry'>[] {
  const rows: Row<'telemetry'>[] = [];
  const carriedNs = new Map<number, number>();
  for (const [index, { tNs, reading }] of [...samples.entries()].reverse()) {
    const before = samples[index - 1];
    if (!before || tNs <= before.tNs) continue;
    for (const [pid, now] of reading.mainThreads) {
      const earlier = before.reading.mainThreads.get(pid);
      if (earlier === undefined) continue;
      const delayNs = Math.max(0, now.delayNs - earlier.delayNs) + (carriedNs.get(pid) ?? 0);
      const spanNs = tNs - before.tNs;
      carriedNs.set(pid, Math.max(0, delayNs - spanNs));
      const put = (metric: string, ns: number): unknown =>
        rows.push({
          ...keys,
          pid,
          t_ns: tNs,
          scope: `thread${pid}`,
          metric,
          value: (100 * Math.min(ns, spanNs)) / spanNs,
        });
      put('run_delay_percent', delayNs);
      put('on_core_percent', Math.max(0, now.cpuNs - earlier.cpuNs));
    }
  }
  return rows.reverse();
}

/** Utilization between two samples; null for a core without new ticks (samples under 10 ms apart). */
function hostLoad(from: HostSample, to: HostSample) {
  let busy = 0;
  let steal = 0;
  let total = 0;
  const perCore = to.reading.cores.map((now, index) => {
    const before = from.reading.cores[index];
    // iowait may run backwards (proc(5)), hence the floors
    const coreTotal = before ? now.total - before.total : 0;
    if (!before || coreTotal <= 0) return null;
    const coreBusy = Math.min(coreTotal, Math.max(0, now.busy - before.busy));
    busy += coreBusy;
    steal += Math.max(0, now.steal - before.steal);
    total += coreTotal;
    return (100 * coreBusy) / coreTotal;
  });
  const share = (ticks: number) => (total > 0 ? (100 * ticks) / total : null);
  return { perCore, percent: share(busy), stealPercent: share(steal), busyNs: busy * nsPerTick };
}

function treeCores(from: HostSample, to: HostSample): number | null {
  if (!from.reading.tree || !to.reading.tree || to.tNs <= from.tNs) return null;
  // A re-parented child takes its time with it: never below zero.
  return Math.max(0, to.reading.tree.cpuNs - from.reading.tree.cpuNs) / (to.tNs - from.tNs);
}

interface OtherLoad {
  windows: { tNs: number; others: number; inferscope: number }[];
  mean: number | null;
  max: number | null;
}

/** Busy time minus that of the watched tree and of inferscope, in cores. */
export function otherLoad(all: HostSample[]): OtherLoad {
  // After its exit the watched process has no readings: its time must not be attributed to other processes.
  const samples = all.filter(({ reading }) => reading.tree !== null);
  const windows: OtherLoad['windows'] = [];
  const between = (from: HostSample, to: HostSample) => {
    const spanNs = to.tNs - from.tNs;
    const ownShare = Math.max(0, to.reading.ownCpuNs - from.reading.ownCpuNs) / spanNs;
    const busy = hostLoad(from, to).busyNs / spanNs;
    return {
      tNs: to.tNs,
      inferscope: ownShare,
      others: Math.max(0, busy - (treeCores(from, to) ?? 0) - ownShare),
    };
  };
  let from = samples[0];
  for (const to of samples) {
    if (!from || to.tNs - from.tNs < otherWindowNs) continue;
    windows.push(between(from, to));
    from = to;
  }
  const first = samples[0];
  const last = samples.at(-1);
  const isLong = first && last && last.tNs - first.tNs >= otherWindowNs / 2;
  if (!isLong) return { windows, mean: null, max: null };
  const overall = between(first, last);
  if (windows.length === 0) windows.push(overall);
  return { windows, mean: overall.others, max: Math.max(...windows.map((window) => window.others)) };
}

/** Memory of the tree at each sample, and the kernel's peak of each process once. */
export function hostMemoryRows(samples: HostSample[], keys: Keys, continues = false): Row<'memory'>[] {
  const rows: Row<'memory'>[] = [];
  // Pages shared between processes of the tree are counted once in each: the sum is then an upper bound.
  const source =
    process.platform === 'linux' ? '/proc/<pid>/status, summed over the process tree' : 'process.memoryUsage';
  for (const { tNs, reading } of continues ? samples.slice(1) : samples) {
    const memory = reading.tree?.memory;
    if (!memory) continue;
    const put = (kind: string, bytes: number | null) => {
      if (bytes !== null) rows.push({ ...keys, device: null, t_ns: tNs, kind, bytes, point: null, source });
    };
    put('rss', memory.rssBytes);
    put('anonymous', memory.anonymousBytes);
    put('file', memory.fileBytes);
  }
  const last = samples.at(-1);
  for (const [pid, bytes] of last?.reading.peaks ?? []) {
    const peakSource = process.platform === 'linux' ? '/proc/<pid>/status VmHWM' : 'getrusage ru_maxrss';
    rows.push({
      ...keys,
      pid,
      device: null,
      t_ns: last!.tNs,
      kind: 'peak_rss',
      bytes,
      point: null,
      source: peakSource,
    });
  }
  return rows;
}

interface Circumstances {
  missedSamples: number;
  costUs: { mean: number; max: number };
  periodNs: number;
  others: OtherLoad;
  pid: number;
  /** Samples of the whole recording, when not all of them are available. */
  samples?: number;
}

const tenths = (cores: number): number => Number(cores.toFixed(1));

/** Reasons to doubt the figures of this recording. */
export function hostIssues(samples: HostSample[], circumstances: Circumstances): Issue[] {
  const issues: Issue[] = [];
  const cores = samples[0]?.reading.cores.length ?? 0;
  const { mean, max } = circumstances.others;
  // Background daemons always run; a tenth of a core, or 2 % of a large machine, is more than those.
  if (mean !== null && mean > Math.max(0.1, 0.02 * cores)) {
    const [used, peak] = [tenths(mean), tenths(Math.max(mean, max!))];
    issues.push({
      code: 'machine_not_idle',
      severity: 'warning',
      // One template, so that the recordings of several executions merge.
      ...sentence`The machine was not idle: other processes used ${used} of ${cores} cores (peak ${peak}).`,
    });
  }
  const first = samples[0];
  const last = samples.at(-1);
  const steal = first && last && last !== first ? hostLoad(first, last).stealPercent : null;
  if (steal !== null && steal > 1) {
    issues.push({
      code: 'cpu_steal',
      severity: 'warning',
      ...sentence`The hypervisor gave ${quantity(steal, '%')} of this machine's CPU time to other machines.`,
    });
  }
  if (circumstances.missedSamples > 0) {
    const share =
      circumstances.missedSamples / (circumstances.missedSamples + (circumstances.samples ?? samples.length));
    issues.push({
      code: 'late_samples',
      severity: share > 0.1 ? 'warning' : 'info',
      ...sentence`Missed host samples: ${circumstances.missedSamples} (${quantity(share, 'ratio')}), because the sampling process was busy.`,
      count: circumstances.missedSamples,
    });
  }
  if (circumstances.costUs.mean * 1000 > 0.05 * circumstances.periodNs) {
    issues.push({
      code: 'sampling_cost',
      severity: 'warning',
      ...sentence`Sampling the host takes more than 5 % of a core: ${quantity(circumstances.costUs.mean, 'us')} per sample.`,
    });
  }
  if (process.platform === 'linux' && !samples.some((sample) => sample.reading.tree)) {
    issues.push({
      code: 'process_unreadable',
      severity: 'warning',
      ...sentence`Process ${String(circumstances.pid)} could not be read.`,
    });
  }
  return issues;
}
