import os from 'node:os';
import process from 'node:process';
import type { Issue } from '../../model/document.js';
import type { MonitorPlan } from '../../model/documents/monitor.js';
import type { Row } from '../../model/tables.js';
import { monotonicNs } from '../../model/clock.js';
import { startHostSampler, type HostSampler } from '../telemetry.js';
import type { Gpus } from '../telemetry-gpus.js';
import { startDeviceSampler, type LatestDevice, type DeviceRows } from '../run/device-sampler.js';
import { identifyGpuProcess, pidNamespace, type GpuProcessFacts } from './gpu-processes.js';
import { plural } from '../../vocabulary/format.js';

interface WatchOptions {
  gpus: Gpus | null;
  /** GPU samples per second; the host is sampled at least 10 times per second. */
  hz: number;
  keys: { execution_id: string; host: string };
  /** A process to watch with its descendants; null: none. */
  pid: number | null;
}

/** Memory now; the other values are means since the last tick. */
export interface HostNow {
  cpuPercent: number | null;
  memoryUsedBytes: number;
  memoryTotalBytes: number;
  /** Cores used by the watched process and its descendants. */
  treeCores: number | null;
  treeRssBytes: number | null;
  otherCores: number | null;
}

export interface WatchEnd extends DeviceRows {
  issues: Issue[];
  sampleCostUs: MonitorPlan['sample_cost_us'];
  processes: GpuProcessFacts[];
  pidNamespace: MonitorPlan['pid_namespace'];
}

export interface Watch {
  /** Call it once a second: the rows since the last call, and the values of a live view. */
  tick(): { rows: DeviceRows; devices: LatestDevice[]; host: HostNow };
  /** Changes the process to watch. @returns rows of the previous one */
  follow(pid: number): DeviceRows;
  stop(): WatchEnd;
}

/** Above this number of cores only the host's mean is stored. */
const maxCores = 32;

/** Samples GPUs and host until stop(). */
export function startWatch({ gpus, hz, keys, pid }: WatchOptions): Watch {
  const device = gpus && startDeviceSampler(gpus, { ...keys, capture_id: 'gpus' }, hz, true);
  const hostKeys = { ...keys, capture_id: 'host' };
  let watched = pid;
  const startSampler = (): HostSampler =>
    startHostSampler({ pid: watched ?? process.pid, hz, keys: hostKeys });
  let host = startSampler();
  const processes = new Map<number, GpuProcessFacts>();
  const namespace = pidNamespace();
  const issues: Issue[] = [];

  function hostRows(rows: DeviceRows): DeviceRows {
    const telemetry = rows.telemetry.filter(
      ({ scope }) => !/^cpu\d+$/.test(scope!) || os.availableParallelism() <= maxCores,
    );
    if (watched !== null) return { ...rows, telemetry };
    // Only inferscope itself is watched: that is the cost of watching, not a workload.
    return {
      telemetry: telemetry
        .filter(({ scope }) => scope !== 'inferscope')
        .map((row) => (row.scope === 'process' ? { ...row, scope: 'inferscope' } : row)),
      memory: [],
    };
  }

  function memoryRow(t_ns: number, bytes: number): Row<'telemetry'> {
    return {
      ...hostKeys,
      pid: null,
      rank: 0,
      t_ns,
      scope: 'host',
      metric: 'memory_used_bytes',
      value: bytes,
    };
  }

  /** os.freemem is MemAvailable on Linux: reclaimable caches do not count as used. */
  const memoryUsed = () => os.totalmem() - os.freemem();

  function identifyProcesses(): void {
    for (const { details } of device?.latest() ?? [])
      for (const gpuProcess of details?.processes ?? [])
        if (!processes.has(gpuProcess.pid))
          processes.set(gpuProcess.pid, identifyGpuProcess(gpuProcess.pid, namespace));
  }

  return {
    tick() {
      const fromHost = hostRows(host.drain());
      const fromGpus = device?.drain() ?? { telemetry: [], memory: [] };
      identifyProcesses();
      const bytes = memoryUsed();
      const mean = (scope: string, metric: string) => meanOf(fromHost.telemetry, scope, metric);
      return {
        rows: {
          telemetry: [...fromGpus.telemetry, ...fromHost.telemetry, memoryRow(monotonicNs(), bytes)],
          memory: [...fromGpus.memory, ...fromHost.memory],
        },
        devices: device?.latest() ?? [],
        host: {
          cpuPercent: mean('host', 'utilization_percent'),
          memoryUsedBytes: bytes,
          memoryTotalBytes: os.totalmem(),
          treeCores: watched === null ? null : mean('process', 'cores_busy'),
          treeRssBytes: watched === null ? null : mean('process', 'rss_bytes'),
          otherCores: mean('other_processes', 'cores_busy'),
        },
      };
    },
    follow(next) {
      const before = hostRows(host.stop());
      watched = next;
      host = startSampler();
      return before;
    },
    stop() {
      const ended = host.stop();
      const fromHost = hostRows(ended);
      const fromGpus = device?.stop() ?? { telemetry: [], memory: [], issues: [] };
      identifyProcesses();
      issues.push(...fromGpus.issues);
      // A monitor expects other programs to run.
      issues.push(...ended.issues.filter(({ code }) => code !== 'machine_not_idle'));
      const foreign = [...processes.values()].filter(({ here }) => here !== true);
      if (foreign.length > 0) issues.push(foreignProcesses(foreign.length, namespace));
      return {
        telemetry: [...fromGpus.telemetry, ...fromHost.telemetry, memoryRow(monotonicNs(), memoryUsed())],
        memory: [...fromGpus.memory, ...fromHost.memory],
        issues,
        sampleCostUs: { gpus: device?.costUs() ?? null, host: ended.costUs },
        processes: [...processes.values()],
        pidNamespace: namespace,
      };
    },
  };
}

function foreignProcesses(count: number, namespace: string): Issue {
  const why =
    namespace === 'nested'
      ? 'this is a container, and the driver lists processes by the ids of the host'
      : 'they exited before they could be read, or belong to another container';
  return {
    code: 'gpu_processes_foreign',
    severity: 'info',
    text: `${plural(count, 'process', 'processes')} on a GPU could not be found here: ${why}.`,
    count,
  };
}

function meanOf(rows: readonly Row<'telemetry'>[], scope: string, metric: string): number | null {
  const values = rows.filter((row) => row.scope === scope && row.metric === metric).map((row) => row.value!);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}
