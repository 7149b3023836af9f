import { monotonicClock, monotonicNs } from '../model/clock.js';
import type { DeviceRows } from '../capture/run/device-sampler.js';
import { startWatch, type Watch, type WatchEnd } from '../capture/monitor/watch.js';
import { gpuFacts, openGpus, type Gpus, type GpusOpened } from '../capture/telemetry-gpus.js';
import type { Document, Issue } from '../model/document.js';
import type { MonitorPlan, MonitorResult } from '../model/documents/monitor.js';
import { InferscopeError } from '../model/errors.js';
import { redactCommand } from '../model/redaction.js';
import { toolVersion } from '../model/version.js';
import { openDisplay, type Display } from './monitor-display.js';
import { openMonitorSession, type MonitorSession, type MonitorCommandOptions } from './monitor-session.js';
import { warn } from './output.js';

export interface Recording {
  watch: Watch;
  session: MonitorSession;
  /** Rows that arrive outside the per-second samples. */
  append(rows: DeviceRows): void;
  /** Runs until `ended` resolves, showing each second. */
  untilEnd(ended: Promise<unknown>): Promise<void>;
  /** Summarizes. */
  conclude(end: RecordingEnd): Promise<Document<MonitorResult>>;
  abandon(): Promise<void>;
}

export interface RecordingEnd {
  title: string;
  status: 'complete' | 'interrupted' | 'failed';
  program: MonitorPlan['program'];
}

/** Execution of the samples. */
export const executionId = 'monitor';

/**
 * Opens GPUs, session and samplers.
 * @param shown false: no live view, because the program uses the terminal
 * @throws E_TOOL_MISSING, E_PERMISSION with --require-gpu where no GPU can be read
 */
export async function startRecording(
  label: string,
  options: MonitorCommandOptions,
  shown: boolean,
): Promise<Recording> {
  const { gpus, reason } = await openGpus();
  if (!gpus) {
    const why = noGpuParts(reason);
    if (options.requireGpu) {
      throw new InferscopeError(reason.code === 'permission' ? 'E_PERMISSION' : 'E_TOOL_MISSING', why);
    }
    warn(`${why.what}: only the host is sampled. ${why.why} ${why.fix}`);
  }
  const session = await openMonitorSession(label, options).catch((error: unknown) => {
    gpus?.close();
    throw error;
  });
  const { recording } = session;
  const { originNs, secrets } = recording;
  const keys = { execution_id: executionId, host: 'localhost' };
  const watch = startWatch({ gpus, hz: options.hz, keys, pid: options.pid ?? null });
  const display = openDisplay(
    titleOf(gpus, options.hz),
    options.quiet === true || options.json === true || !shown,
  );

  return {
    watch,
    session,
    append: recording.append,
    untilEnd: (ended) => eachSecond(watch, recording.append, display, originNs, ended),
    async conclude({ title, status, program }) {
      const end = watch.stop();
      gpus?.close();
      recording.append(end);
      const plan = planOf(gpus, reason, end, options, program, originNs);
      await recording.keepJson('monitor', plan);
      const facts = gpuFacts(gpus);
      const capture = (capture_id: string, name: string) => ({
        capture_id,
        execution_id: executionId,
        tool: { name, version: toolVersion },
        importer: 'sampler',
        clock: monotonicClock,
      });
      const none: Issue[] = reason
        ? [{ code: 'no_gpu', severity: 'info', text: `No GPU was sampled. ${reason.text}` }]
        : [];
      return session.conclude({
        title,
        status,
        ...facts,
        executions: [
          {
            execution_id: executionId,
            purpose: 'clean',
            command: redactCommand(program?.command ?? [], [...secrets]),
            exit_code: program?.exit_code ?? null,
            start_ns: program ? program.start_ns - originNs : 0,
            end_ns: (program?.end_ns ?? monotonicNs()) - originNs,
          },
        ],
        captures: [
          ...(gpus ? [capture('gpus', `inferscope sampler (${gpus.source})`)] : []),
          capture('host', 'inferscope host sampler'),
        ],
        issues: [...none, ...end.issues],
      });
    },
    async abandon() {
      watch.stop();
      gpus?.close();
      await session.abandon();
    },
  };
}

async function eachSecond(
  watch: Watch,
  append: (rows: DeviceRows) => void,
  display: Display,
  originNs: number,
  ended: Promise<unknown>,
): Promise<void> {
  let over = false;
  const end = ended.finally(() => (over = true));
  try {
    for (let second = 1; ; second++) {
      let timer: NodeJS.Timeout | undefined;
      const due = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.max(0, (originNs + second * 1e9 - monotonicNs()) / 1e6));
      });
      try {
        await Promise.race([due, end]);
      } finally {
        clearTimeout(timer);
      }
      if (over) return;
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
  return `inferscope monitor · ${count} GPU${count === 1 ? '' : 's'} from ${gpus.source}${driver} · ${hz} Hz`;
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
