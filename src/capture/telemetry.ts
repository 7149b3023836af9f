import type { Issue } from '../model/document.js';
import type { Row } from '../model/tables.js';
import { openLinuxHost } from './host.js';
import { openPortableHost } from './host-portable.js';
import {
  type HostSample,
  hostIssues,
  hostMemoryRows,
  hostTelemetryRows,
  otherLoad,
} from './host-recording.js';
import { startTicks } from './telemetry-ticks.js';

interface HostSamplerOptions {
  /** The process to watch, with all its descendants. */
  pid: number;
  /** Samples per second, default 20, at least 10. */
  hz?: number;
  /** Event keys for every row. */
  keys?: Pick<Row<'telemetry'>, 'execution_id' | 'capture_id' | 'host' | 'rank'>;
}

export interface HostRecording {
  /**
   * Scopes: `cpu0`… and `host` (utilization_percent, steal_percent, cpu_pressure_some_percent, …), `process` (the watched tree: cores_busy,
   * rss_bytes), `thread<pid>` (run_delay_percent and on_core_percent of the main thread of each process of the tree), `other_processes` (cores_busy of all
   * processes except the tree and inferscope) and `inferscope` (cores_busy of the sampling process). t_ns is the end of the interval of a
   * rate.
   */
  telemetry: Row<'telemetry'>[];
  /** kind rss, anonymous, file of the whole tree at each sample; peak_rss (VmHWM) once per process, at the end. */
  memory: Row<'memory'>[];
  issues: Issue[];
  samples: number;
  /** Due times missed because the event loop was busy. */
  missedSamples: number;
  /** Cost of one sample for this process, microseconds. */
  costUs: { mean: number; max: number };
  /** Cores used by other processes over the whole recording; null when it was too short. */
  otherCoresMean: number | null;
}

export interface HostSampler {
  /**
   * The rows since the last call, which are then released: for recordings of any length. Without peak_rss, which comes
   * at the end. Calls should be at least one second apart, otherwise the load of other processes is unknown.
   */
  drain(): Pick<HostRecording, 'telemetry' | 'memory'>;
  /** Takes a last sample, closes all files and returns the rows. t_ns is CLOCK_MONOTONIC; call it once. */
  stop(): HostRecording;
}

/** Samples the host until stop(). Missed due times are counted and reported as an issue. */
export function startHostSampler(options: HostSamplerOptions): HostSampler {
  const periodNs = 1e9 / Math.max(10, options.hz ?? 20);
  const reader = process.platform === 'linux' ? openLinuxHost(options.pid) : openPortableHost(options.pid);
  let samples: HostSample[] = [];
  /** The whole recording (`samples` has only the rows not drained): the basis of the issues. */
  let count = 0;
  let first: HostSample | null = null;
  let firstAlive: HostSample | null = null;
  let lastAlive: HostSample | null = null;
  let drained = false;
  let othersMax = 0;
  let costSumNs = 0;
  let costMaxNs = 0;

  function takeSample(): void {
    const tNs = Number(process.hrtime.bigint());
    const sample = { tNs, reading: reader.read(tNs) };
    samples.push(sample);
    count++;
    first ??= sample;
    if (sample.reading.tree) {
      firstAlive ??= sample;
      lastAlive = sample;
    }
    const costNs = Number(process.hrtime.bigint()) - tNs;
    costSumNs += costNs;
    costMaxNs = Math.max(costMaxNs, costNs);
  }

  takeSample();
  const ticks = startTicks(periodNs, samples[0]!.tNs, takeSample);
  const keys = { rank: 0, ...options.keys, pid: options.pid };

  return {
    drain() {
      const part = samples;
      const others = otherLoad(part);
      othersMax = Math.max(othersMax, others.max ?? 0);
      const telemetry = hostTelemetryRows(part, others, keys, drained);
      const memory = hostMemoryRows(part, keys, drained).filter(({ kind }) => kind !== 'peak_rss');
      // Rates need the previous sample: the last one starts the next part; its own values have already been returned.
      samples = part.slice(-1);
      drained = true;
      return { telemetry, memory };
    },
    stop() {
      ticks.stop();
      takeSample();
      reader.close();
      const part = otherLoad(samples);
      const overall = drained ? otherLoad([firstAlive, lastAlive].filter((sample) => sample !== null)) : part;
      const others = { ...overall, max: overall.mean === null ? null : Math.max(othersMax, part.max ?? 0) };
      const costUs = { mean: costSumNs / count / 1000, max: costMaxNs / 1000 };
      const missedSamples = ticks.missedCount();
      const issueContext = { missedSamples, costUs, periodNs, others, pid: options.pid, samples: count };
      const issueSamples = drained ? [first!, lastAlive ?? first!, samples.at(-1)!] : samples;
      return {
        telemetry: hostTelemetryRows(samples, part, keys, drained),
        memory: hostMemoryRows(samples, keys, drained),
        issues: [
          ...reader.notes.map((note): Issue => ({ ...note, severity: 'info' })),
          ...hostIssues(issueSamples, issueContext),
        ],
        samples: count,
        missedSamples,
        costUs,
        otherCoresMean: others.mean,
      };
    },
  };
}
