import type { Issue } from '../model/document.js';
import type { Row } from '../model/tables.js';
import { openLinuxHost } from './host.js';
import { openPortableHost } from './host-portable.js';
import type { HostSample } from './host-recording.js';
import { hostIssues, hostMemoryRows, hostTelemetryRows, otherLoad } from './host-recording.js';

export interface HostSamplerOptions {
  /** The process to watch, with all its descendants. */
  pid: number;
  /** Samples a second, 20 unless told, at least 10. */
  hz?: number;
  /** Event keys that go into every row. */
  keys?: Pick<Row<'telemetry'>, 'execution_id' | 'capture_id' | 'host' | 'rank'>;
}

export interface HostRecording {
  /**
   * Scopes: `cpu0`… and `host` (utilization_percent, clock_mhz, steal_percent), `process` (the watched tree:
   * cores_busy, rss_bytes), `other_processes` (cores_busy: all that is neither the tree nor inferscope) and
   * `inferscope` (cores_busy of the process that samples). t_ns is the end of the interval a rate is over.
   */
  telemetry: Row<'telemetry'>[];
  /** kind rss, anonymous, file of the whole tree at each sample; peak_rss (VmHWM) once a process, at the end. */
  memory: Row<'memory'>[];
  issues: Issue[];
  samples: number;
  /** Due times that passed by unsampled because the event loop was busy. */
  missedSamples: number;
  /** What taking a sample costs this process, microseconds. */
  costUs: { mean: number; max: number };
  /** Cores used by other processes over the whole recording; null when it was too short to say. */
  otherCoresMean: number | null;
}

export interface HostSampler {
  /** Takes a last sample, closes every file and gives the rows. t_ns is CLOCK_MONOTONIC; call it once. */
  stop(): HostRecording;
}

/**
 * Samples the host until stop(). The timer does not keep the process alive, and it is aimed at absolute due times,
 * so that late samples do not add up; each due time that went by is counted and told as an issue.
 */
export function startHostSampler(options: HostSamplerOptions): HostSampler {
  const periodNs = 1e9 / Math.max(10, options.hz ?? 20);
  const reader = process.platform === 'linux' ? openLinuxHost(options.pid) : openPortableHost(options.pid);
  const samples: HostSample[] = [];
  let missedSamples = 0;
  let costSumNs = 0;
  let costMaxNs = 0;

  function take(): void {
    const tNs = Number(process.hrtime.bigint());
    samples.push({ tNs, reading: reader.read(tNs) });
    const costNs = Number(process.hrtime.bigint()) - tNs;
    costSumNs += costNs;
    costMaxNs = Math.max(costMaxNs, costNs);
  }

  take();
  let dueNs = samples[0]!.tNs + periodNs;
  let timer: NodeJS.Timeout;
  function schedule(): void {
    const waitNs = dueNs - Number(process.hrtime.bigint());
    timer = setTimeout(
      () => {
        take();
        const lateNs = Number(process.hrtime.bigint()) - dueNs;
        const missed = Math.max(0, Math.floor(lateNs / periodNs));
        missedSamples += missed;
        dueNs += (missed + 1) * periodNs;
        schedule();
      },
      Math.max(0, waitNs / 1e6),
    );
    timer.unref();
  }
  schedule();

  return {
    stop() {
      clearTimeout(timer);
      take();
      reader.close();
      const keys = { rank: 0, ...options.keys, pid: options.pid };
      const others = otherLoad(samples);
      const costUs = { mean: costSumNs / samples.length / 1000, max: costMaxNs / 1000 };
      return {
        telemetry: hostTelemetryRows(samples, others, keys),
        memory: hostMemoryRows(samples, keys),
        issues: [
          ...reader.notes.map((note): Issue => ({ ...note, severity: 'info' })),
          ...hostIssues(samples, { missedSamples, costUs, periodNs, others, pid: options.pid }),
        ],
        samples: samples.length,
        missedSamples,
        costUs,
        otherCoresMean: others.mean,
      };
    },
  };
}
