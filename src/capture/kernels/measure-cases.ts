import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineLaunch } from '../../model/engine.js';
import { messageOf } from '../../model/errors.js';
import type { KernelCase, KernelOrder } from '../../model/kernels.js';
import { dropCutOffLine } from '../bench/record-file.js';
import { sampleLaunch } from '../bench/launch-samplers.js';
import { passOnRecord } from '../outer-run.js';
import { monotonicNs } from '../../model/clock.js';
import { openGpus, type Gpus } from '../telemetry-gpus.js';
import type { KernelCapture, KernelOptions } from './capture.js';
import { findOtherProcesses, sharedDuring } from './other-processes.js';
import { recordedCases, recordSize, recordUnmeasured } from './recorded-cases.js';
import { startWatchdog } from './watchdog.js';

/** Number of processes that may die or hang before the rest is no longer tried in a new one. */
const maxDeaths = 3;
/** Time for importing torch from a cold disk, creating a context, and ramping up the clocks. */
const startUpMs = 180_000;
const minPatienceMs = 120_000;
/** Time after SIGKILL; a process blocked in the driver may never exit. */
const unkillableMs = 30_000;

/**
 * Measures the cases of an order in processes of `runner`, sampling GPUs and host. A case that kills its process, or hangs,
 * is recorded as failed, and later cases continue in a new process. Never throws for failed cases or processes: every case
 * of the order then has a line in the record.
 */
export async function measureCases(order: KernelOrder, options: KernelOptions): Promise<KernelCapture> {
  const { recordPath, signal } = options;
  const capture: KernelCapture = {
    order,
    recordPath,
    launches: [],
    device: null,
    start_ns: monotonicNs(),
    end_ns: 0,
    sampled: [],
    issues: [],
    stopped: false,
  };
  const from = await recordSize(recordPath);
  const { gpus } = await openGpus();
  try {
    if (gpus && options.runner.device !== 'cpu') capture.issues.push(...(await findOtherProcesses(gpus)));
    // Ranks are processes of their own, each with its own GPU.
    const collective = ({ kernel }: KernelCase) => kernel === 'all-reduce';
    for (const part of [
      order.cases.filter((kernelCase) => !collective(kernelCase)),
      order.cases.filter(collective),
    ])
      await measurePart(part, { capture, gpus, options, from });
  } finally {
    gpus?.close();
  }
  passOnRecord(recordPath, from);
  capture.stopped = signal.aborted;
  capture.end_ns = monotonicNs();
  return capture;
}

interface Context {
  capture: KernelCapture;
  gpus: Gpus | null;
  options: KernelOptions;
  /** Size of the record before this order, bytes. */
  from: number;
}

async function measurePart(part: KernelCase[], context: Context): Promise<void> {
  const { capture, options, from } = context;
  const record = { path: options.recordPath, execution_id: capture.order.execution_id };
  let remaining = part;
  for (let deaths = 0; remaining.length > 0 && !options.signal.aborted; deaths++) {
    if (deaths > maxDeaths) {
      recordUnmeasured(record, remaining, 'failed', `Not tried: ${deaths} processes died before it.`);
      return;
    }
    const { failure, runningCase, hung, before } = await launchOnce(remaining, context);
    const done = await recordedCases(options.recordPath, from);
    remaining = remaining.filter((kernelCase) => !done.has(kernelCase.case));
    if (remaining.length === 0 || options.signal.aborted) break;
    const words = failure === null ? 'Its process exited without output.' : messageOf(failure);
    const [current] =
      runningCase === null ? [] : remaining.filter((kernelCase) => kernelCase.case === runningCase);
    // It did not reach its first case: the next process would not either.
    if (!current && done.size === before) {
      recordUnmeasured(record, remaining, 'failed', words);
      return;
    }
    if (current) {
      const died = failure === null ? words : `Its process died: ${words}`;
      const text = hung ? 'It hung, and its process was killed.' : died;
      recordUnmeasured(record, [current], 'failed', text);
      remaining = remaining.filter((kernelCase) => kernelCase !== current);
    }
    if (remaining.length === 0) break;
    const where = current ? ` in ${current.case}` : '';
    const next = deaths < maxDeaths ? 'continued in a new process' : 'were not tried';
    const text = `A process ${hung ? 'hung' : 'exited'}${where}; remaining cases (${remaining.length}) ${next}.`;
    capture.issues.push({ code: 'kernel_process_died', severity: 'warning', text });
  }
  if (remaining.length > 0) recordUnmeasured(record, remaining, 'stopped', 'Stopped before this case.');
}

/** @returns the running case when the process exited, and how many were recorded before */
async function launchOnce(
  cases: KernelCase[],
  { capture, gpus, options, from }: Context,
): Promise<{ failure: unknown; runningCase: string | null; hung: boolean; before: number }> {
  const { order, launches } = capture;
  const { runner, recordPath } = options;
  const before = (await recordedCases(recordPath, from)).size;
  const patienceMs = options.patienceMs ?? Math.max(minPatienceMs, 10_000 * order.max_seconds);
  const scratch = join(options.scratch, `kernels-${launches.length}`);
  await mkdir(scratch, { recursive: true });
  const watchdog = startWatchdog(options.signal, Math.max(startUpMs, patienceMs));
  let current: string | null = null;
  let launched: EngineLaunch;
  try {
    launched = runner.launch(
      { ...order, cases },
      {
        recordPath,
        scratch,
        signal: watchdog.signal,
        onProgress({ case: name, done }) {
          watchdog.feed(patienceMs);
          const total = order.cases.length;
          const allDone = done === cases.length;
          current = allDone ? null : name;
          if (!allDone || before + done === total)
            options.onProgress({ type: 'case', case: name, done: before + done, total });
        },
        onDevice(device) {
          capture.device ??= device;
        },
      },
    );
  } catch (failure) {
    launched = { pid: null, ended: Promise.resolve({ failure, log: null }) };
  }
  const keys = { execution_id: order.execution_id, host: options.host };
  const samplers = sampleLaunch(launched, runner.device === 'cpu' ? null : gpus, keys);
  const { failure, log } = await Promise.race([
    launched.ended.catch((error: unknown) => ({ failure: error, log: null })),
    unkillable(watchdog.signal),
  ]);
  watchdog.stop();
  const { issues, ...rows } = samplers.stop();
  options.onRows(rows);
  capture.issues.push(...issues, ...sharedDuring(rows.telemetry));
  const names = [...rows.telemetry, ...rows.memory].map((row) => row.capture_id!);
  capture.sampled = [...new Set([...capture.sampled, ...names])];
  launches.push({ launch: launches.length, cases: cases.map((kernelCase) => kernelCase.case), failure, log });
  dropCutOffLine(recordPath);
  return { failure, runningCase: current, hung: watchdog.hung, before };
}

async function unkillable(signal: AbortSignal): Promise<{ failure: unknown; log: null }> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await sleep(unkillableMs, undefined, { ref: false });
  return { failure: new Error('Its process does not exit, even after SIGKILL.'), log: null };
}
