import { monotonicNs } from '../model/clock.js';
import type { DeviceRows } from '../capture/run/device-sampler.js';
import { startWatch, type Watch, type WatchEnd } from '../capture/monitor/watch.js';
import { gpuFacts, openGpus, type Gpus, type GpusOpened } from '../capture/telemetry-gpus.js';
import type { Issue } from '../model/document.js';
import type { MonitorPlan } from '../model/documents/monitor.js';
import { InferscopeError } from '../model/errors.js';
import { inferscopeCapture } from '../record/save-record.js';
import type { Recorded, Recording } from '../record/record-session.js';
import { openDisplay, type Display } from './monitor-display.js';
import { recordMonitor, type MonitorCommandOptions } from './monitor-session.js';
import { warn } from './output.js';
import { formatSetting, plural } from '../vocabulary/format.js';

/** A machine while it is sampled. */
export interface Machine {
  watch: Watch;
  recording: Recording;
  /** Runs until `ended` resolves, showing each second. */
  untilEnd(ended: Promise<unknown>): Promise<void>;
}

interface RecordingEnd {
  title: string;
  status: 'complete' | 'interrupted' | 'failed';
  program: MonitorPlan['program'];
}

/** Execution of the samples. */
const executionId = 'monitor';

/**
 * Samples GPUs and host while `work` runs.
 * @param live false: no live view, because the program uses the terminal
 * @throws E_TOOL_MISSING, E_PERMISSION with --require-gpu where no GPU can be read
 */
export async function recordMachine<T extends object>(
  label: string,
  options: MonitorCommandOptions,
  live: boolean,
  work: (machine: Machine) => Promise<RecordingEnd & { result: T }>,
): Promise<T> {
  const { gpus, reason } = await openGpus();
  if (!gpus) {
    const why = noGpuParts(reason);
    if (options.requireGpu) {
      throw new InferscopeError(reason.code === 'permission' ? 'E_PERMISSION' : 'E_TOOL_MISSING', why);
    }
    // The summary says why.
    warn(`${why.what}: only the host is sampled. ${why.fix}`);
  }
  const quiet = options.quiet === true || options.json === true || !live;
  try {
    return await recordMonitor(label, options, async (recording) => {
      const keys = { execution_id: executionId, host: 'localhost' };
      const watch = startWatch({ gpus, hz: options.hz, keys, pid: options.pid ?? null });
      const { append, originNs } = recording;
      let watchEnd: WatchEnd | null = null;
      try {
        const display = openDisplay(titleOf(gpus, options.hz), quiet);
        const untilEnd = (ended: Promise<unknown>) =>
          sampleEachSecond(watch, append, display, originNs, ended);
        const end = await work({ watch, recording, untilEnd });
        watchEnd = watch.stop();
        append(watchEnd);
        await recording.saveJson('monitor', planOf(gpus, reason, watchEnd, options, end.program, originNs));
        return { ...recordedOf(recording, gpus, reason, watchEnd, end), result: end.result };
      } finally {
        if (watchEnd === null) watch.stop();
      }
    });
  } finally {
    gpus?.close();
  }
}

function recordedOf(
  { originNs }: Recording,
  gpus: Gpus | null,
  reason: GpusOpened['reason'],
  { issues }: WatchEnd,
  { title, status, program }: RecordingEnd,
): Recorded {
  const noGpuIssues: Issue[] = reason
    ? [{ code: 'no_gpu', severity: 'info', text: `No GPU was sampled. ${reason.text}` }]
    : [];
  return {
    title,
    status,
    ...gpuFacts(gpus),
    executions: [
      {
        execution_id: executionId,
        purpose: 'clean',
        command: program?.command ?? [],
        exit_code: program?.exit_code ?? null,
        start_ns: program ? program.start_ns - originNs : 0,
        end_ns: (program?.end_ns ?? monotonicNs()) - originNs,
      },
    ],
    captures: [
      ...(gpus
        ? [inferscopeCapture('gpus', executionId, `inferscope sampler (${gpus.source})`, 'sampler')]
        : []),
      inferscopeCapture('host', executionId, 'inferscope host sampler', 'sampler'),
    ],
    issues: [...noGpuIssues, ...issues],
  };
}

async function sampleEachSecond(
  watch: Watch,
  append: (rows: DeviceRows) => void,
  display: Display,
  originNs: number,
  ended: Promise<unknown>,
): Promise<void> {
  let hasEnded = false;
  const end = ended.finally(() => (hasEnded = true));
  try {
    for (let second = 1; ; second++) {
      let timer: NodeJS.Timeout | undefined;
      const nextSecond = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.max(0, (originNs + second * 1e9 - monotonicNs()) / 1e6));
      });
      try {
        await Promise.race([nextSecond, end]);
      } finally {
        clearTimeout(timer);
      }
      if (hasEnded) return;
      const { rows, devices, host } = watch.tick();
      append(rows);
      display.show({ seconds: (monotonicNs() - originNs) / 1e9, devices, host });
    }
  } finally {
    display.end();
  }
}

function titleOf(gpus: Gpus | null, hz: number): string {
  if (!gpus) return 'inferscope monitor · no GPU';
  const count = gpus.devices.length;
  const driver = gpus.driverVersion === null ? '' : ` (driver ${gpus.driverVersion})`;
  return `inferscope monitor · ${plural(count, 'GPU')} from ${gpus.source}${driver} · ${formatSetting(hz, 'Hz')}`;
}

function planOf(
  gpus: Gpus | null,
  reason: GpusOpened['reason'],
  end: WatchEnd,
  options: MonitorCommandOptions,
  program: MonitorPlan['program'],
  originNs: number,
): MonitorPlan {
  return {
    source: 'live',
    tool: gpus?.source ?? null,
    driver: gpus?.driverVersion ?? null,
    files: [],
    hz: options.hz,
    sample_cost_us: end.sampleCostUs,
    gpus: (gpus?.devices ?? []).flatMap((device) => [
      { scope: `gpu${device.index}`, name: device.name },
      ...device.migDevices.map((part) => ({ scope: `gpu${device.index}.mig${part.index}`, name: part.name })),
    ]),
    no_gpus: reason,
    program: program && {
      ...program,
      start_ns: program.start_ns - originNs,
      end_ns: program.end_ns - originNs,
    },
    processes: end.processes,
    pid_namespace: end.pidNamespace,
  };
}

function noGpuParts({ code, text }: NonNullable<GpusOpened['reason']>): {
  what: string;
  why: string;
  fix: string;
} {
  if (code === 'permission')
    return {
      what: 'the GPU driver denies this user access to the GPUs',
      why: text,
      fix: 'Run as a user who may open /dev/nvidiactl (or in a container with --gpus all), or ask the administrator.',
    };
  return {
    what: 'no GPU can be read',
    why: text,
    fix: 'Run inferscope doctor to see what is missing; in a container: docker run --gpus all.',
  };
}
