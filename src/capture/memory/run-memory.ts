import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchOrder, BenchPoint, BenchProgress } from '../../model/bench.js';
import type { EngineLaunch } from '../../model/engine.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import { startEta } from '../bench/eta.js';
import { sampleLaunch } from '../bench/launch-samplers.js';
import { dropCutOffLine, readRecordedFacts, type RecordedFacts } from '../bench/record-file.js';
import { benchWarmup, type BenchCapture, type BenchExecution, type VariantPlan } from '../bench/run-bench.js';
import { identifyGpuProcess, pidNamespace } from '../monitor/gpu-processes.js';
import { passOnRecord } from '../outer-run.js';
import { monotonicNs } from '../../model/clock.js';
import { readUsedMemory } from '../run/memory-cleared.js';
import { startDeviceSampler } from '../run/device-sampler.js';
import { gpuFacts, openGpus, type Gpus } from '../telemetry-gpus.js';
import { formatSetting, plural } from '../../vocabulary/format.js';
import { watchProcesses, withoutEngine } from './engine-processes.js';
import type { MemoryTarget, SourceRows } from './memory-target.js';

interface MemoryRunOptions {
  target: MemoryTarget;
  point: BenchPoint;
  model: string;
  dtype: string | null;
  device: string | null;
  engineArgs: Record<string, string>;
  seed: number;
  /** Timed repeats. */
  runs: number;
  snapshot: boolean;
  timeoutS: number | null;
  scratch: string;
  host: string;
  /** CLOCK_MONOTONIC at the session's time 0. */
  originNs: number;
  signal: AbortSignal;
  /** @param leftS seconds left of warm-up and timed repeats; null before the first */
  onProgress: (progress: BenchProgress, leftS: number | null) => void;
}

/** Facts known only during the run; the rest of the plan comes from the request. */
type MemoryRunFacts = Pick<
  MemoryPlan,
  | 'timed_out'
  | 'launch_ns'
  | 'ended_ns'
  | 'sampled_until_ns'
  | 'phases'
  | 'sampler'
  | 'gpus'
  | 'own_pids'
  | 'others_before'
  | 'pid_namespace'
  | 'failure'
>;

export interface MemoryRun {
  /** In the format of importBench: one variant, one launch. */
  bench: BenchCapture;
  facts: MemoryRunFacts;
  failure: InferscopeError | null;
  rows: Pick<SourceRows, 'memory' | 'telemetry'>;
}

const memoryExecution = 'memory';
/** Samples of GPUs and host per second. */
const hz = 20;
/** Sampling time before the launch, for the baseline. */
const leadMs = 500;
/** Sampling time after the exit, until the driver has freed the context. */
const tailMs = 500;
/** Maximum wait for processes of an earlier run to disappear from the driver's list. */
const disappearMs = 3000;
/** Driver and display use less than this. */
const unusedBytes = 2 ** 30;

/**
 * Runs the engine once while sampling memory, from before its process starts until after it exits. Never throws for an
 * engine that failed, ran out of memory or took too long: the data until then is the result.
 */
export async function runMemory(options: MemoryRunOptions): Promise<MemoryRun> {
  const { target, originNs, scratch, host, signal } = options;
  const opened = await openGpus();
  const gpus = target.samplesHere ? opened.gpus : null;
  const keys = { execution_id: memoryExecution, host };
  const othersBefore = gpus ? await waitForOthers(gpus, target.pids?.() ?? [], signal) : [];
  const samplers = startSamplers(target, gpus, keys);
  if (samplers.length > 0) await sleep(leadMs);

  const recordPath = join(scratch, `${memoryExecution}.jsonl`);
  const launch = await runLaunch(options, recordPath, keys);
  if (samplers.length > 0) await sleep(tailMs);
  const parts: SourceRows[] = [launch.hostRows];
  for (const sampler of samplers) parts.push(await sampler.stop());
  const sampledUntilNs = monotonicNs();
  opened.gpus?.close();
  dropCutOffLine(recordPath);
  passOnRecord(recordPath);

  const recorded = await readRecordedFacts(recordPath);
  const failure =
    failureOf(launch.failure, launch.timedOut, options.timeoutS) ?? failureOfPoint(recorded, signal.aborted);
  return {
    bench: {
      executions: [executionOf(options, { recordPath, launch, parts, failure, recorded })],
      issues: [...target.issues],
      facts: gpuFacts(gpus),
      stopped: signal.aborted,
    },
    facts: {
      timed_out: launch.timedOut,
      launch_ns: launch.startNs - originNs,
      ended_ns: launch.endNs - originNs,
      sampled_until_ns: sampledUntilNs - originNs,
      phases: launch.phases,
      sampler: { source: gpus?.source ?? null, hz, why: opened.reason?.text ?? null },
      gpus: (gpus?.devices ?? []).map(({ index, name, memoryTotalBytes }) => ({
        gpu: index,
        name,
        total_bytes: memoryTotalBytes,
      })),
      own_pids: launch.processes.stop(),
      others_before: othersBefore,
      pid_namespace: pidNamespace(),
      failure: failure && { code: failure.code, ...failure.parts },
    },
    failure,
    rows: {
      memory: parts.flatMap(({ memory }) => memory),
      telemetry: parts.flatMap(({ telemetry }) => telemetry),
    },
  };
}

interface SampleKeys {
  execution_id: string;
  host: string;
}

/** Starts what samples memory before and after the launch: the GPUs, and the target's own sources. */
function startSamplers(
  { sources }: MemoryTarget,
  gpus: Gpus | null,
  keys: SampleKeys,
): { stop(): SourceRows | Promise<SourceRows> }[] {
  return [
    ...(gpus ? [startDeviceSampler(gpus, { ...keys, capture_id: `${memoryExecution}-gpus` }, hz, true)] : []),
    ...sources.map((source) => source.start({ ...keys, capture_id: `${memoryExecution}-${source.name}` })),
  ];
}

interface FinishedLaunch {
  failure: unknown;
  log: string | null;
  timedOut: boolean;
  startNs: number;
  endNs: number;
  phases: MemoryPlan['phases'];
  hostRows: SourceRows;
  processes: ReturnType<typeof watchProcesses>;
}

/** Starts the engine, samples its processes and waits for its end or the timeout. */
async function runLaunch(
  options: MemoryRunOptions,
  recordPath: string,
  keys: SampleKeys,
): Promise<FinishedLaunch> {
  const { target, originNs, timeoutS, signal } = options;
  const phases: MemoryPlan['phases'] = [];
  const timeout = new AbortController();
  const timer = timeoutS === null ? undefined : setTimeout(() => timeout.abort(), timeoutS * 1000);
  const expectedPoints = [{ execution_id: memoryExecution, points: [options.point] }];
  const eta = startEta(expectedPoints, { launches: 1, repeats: options.runs });
  eta.startLaunch(memoryExecution, 0);
  const startNs = monotonicNs();
  const launched = await start(options, recordPath, AbortSignal.any([signal, timeout.signal]), (progress) => {
    if (progress.type === 'phase') phases.push({ phase: progress.phase, t_ns: monotonicNs() - originNs });
    if (progress.type === 'iteration') eta.addIteration(memoryExecution, 0, progress.point, progress.e2e_ms);
    else if (progress.type === 'point') eta.closePoint(memoryExecution, 0, progress.point);
    options.onProgress(progress, eta.secondsLeft());
  });
  const hostSampler = target.samplesHere ? sampleLaunch(launched, null, keys) : null;
  const processes = watchProcesses(launched, target);
  const { failure, log } = await launched.ended.catch((error: unknown) => ({ failure: error, log: null }));
  clearTimeout(timer);
  const endNs = monotonicNs();
  const hostRows = hostSampler?.stop() ?? { memory: [], telemetry: [], issues: [] };
  return { failure, log, timedOut: timeout.signal.aborted, startNs, endNs, phases, hostRows, processes };
}

/** The run as one execution of a benchmark with one launch. */
function executionOf(
  options: MemoryRunOptions,
  measured: {
    recordPath: string;
    launch: FinishedLaunch;
    parts: readonly SourceRows[];
    failure: InferscopeError | null;
    recorded: RecordedFacts;
  },
): BenchExecution {
  const { recordPath, launch, parts, failure, recorded } = measured;
  const rows = [...parts.flatMap(({ memory }) => memory), ...parts.flatMap(({ telemetry }) => telemetry)];
  return {
    variant: variantOf(options),
    recordPath,
    launches: [
      {
        launch: 0,
        failure,
        log: launch.log,
        sampled: [...new Set(rows.map((row) => row.capture_id!))],
        issues: parts.flatMap(({ issues }) => issues),
      },
    ],
    start_ns: launch.startNs,
    end_ns: launch.endNs,
    recorded,
  };
}

/** A process that cannot be started counts as failed. */
async function start(
  options: MemoryRunOptions,
  recordPath: string,
  signal: AbortSignal,
  onProgress: (progress: BenchProgress) => void,
): Promise<EngineLaunch> {
  const { target, point } = options;
  const scratch = join(options.scratch, 'launch');
  await mkdir(scratch, { recursive: true });
  const order: BenchOrder = {
    v: 1,
    execution_id: memoryExecution,
    launch: 0,
    first_iteration: 0,
    model: options.model,
    weights: target.prepared.workload.model?.weights === 'trained' ? 'trained' : 'random',
    dtype: options.dtype,
    device: options.device,
    engine_args: options.engineArgs,
    points: [point],
    repeats: options.runs,
    warmup: benchWarmup,
    device_work: false,
    seed: options.seed,
    memory: { snapshot: options.snapshot },
  };
  try {
    return target.prepared.launch(order, { recordPath, scratch, signal, onProgress });
  } catch (failure) {
    return { pid: null, ended: Promise.resolve({ failure, log: null }) };
  }
}

function variantOf({ target, point, engineArgs }: MemoryRunOptions): VariantPlan {
  return {
    execution_id: memoryExecution,
    label: 'defaults',
    engine_args: engineArgs,
    prepared: target.prepared,
    points: [point],
  };
}

/**
 * Other processes on the GPUs. A process that has just exited, perhaps of the previous run, stays listed for a while, and its memory is not
 * free yet.
 * @param ownPids processes of a running server, which do not count
 */
async function waitForOthers(
  gpus: Gpus,
  ownPids: readonly number[],
  signal: AbortSignal,
): Promise<MemoryPlan['others_before']> {
  const deadline = Date.now() + disappearMs;
  for (;;) {
    const found = withoutEngine(await listProcesses(gpus), ownPids);
    const memoryInUse =
      ownPids.length === 0 && readUsedMemory(gpus).some((used) => (used ?? 0) > unusedBytes);
    if ((found.length === 0 && !memoryInUse) || Date.now() >= deadline || signal.aborted) return found;
    await sleep(200);
  }
}

async function listProcesses({ devices }: Gpus): Promise<MemoryPlan['others_before']> {
  const rows: MemoryPlan['others_before'] = [];
  for (const device of devices) {
    for (const { pid, usedBytes } of (await device.details()).processes ?? [])
      rows.push({ gpu: device.index, pid, name: identifyGpuProcess(pid).name, used_bytes: usedBytes });
  }
  return rows;
}

function failureOf(failure: unknown, timedOut: boolean, timeoutS: number | null): InferscopeError | null {
  if (timedOut) {
    return new InferscopeError('E_TIMEOUT', {
      what: `the run did not finish within ${formatSetting(timeoutS ?? 0, 's')} (--timeout)`,
      why: 'It was stopped; measurements until then were saved.',
      fix: 'Give it more time, or a smaller --output-len or --batch-size.',
    });
  }
  if (failure === null || failure instanceof InferscopeError) return failure;
  return new InferscopeError('E_WORKLOAD_FAILED', {
    what: 'the engine failed',
    why: messageOf(failure),
    fix: 'Its log is among the artifacts of the session.',
  });
}

/** An engine that runs out of memory exits normally: its point has the outcome. */
function failureOfPoint({ timed, unmeasured }: RecordedFacts, stopped: boolean): InferscopeError | null {
  const unmeasuredPoint = unmeasured.find(({ outcome }) => outcome !== 'stopped');
  if (stopped || (!unmeasuredPoint && timed > 0)) return null;
  const outOfMemory = unmeasuredPoint?.outcome === 'out_of_memory';
  return new InferscopeError(outOfMemory ? 'E_OUT_OF_MEMORY' : 'E_WORKLOAD_FAILED', {
    what: outOfMemory
      ? `the run ran out of memory${timed > 0 ? ` after ${plural(timed, 'timed repeat')}` : ' in warm-up'}`
      : timed > 0
        ? 'the run failed'
        : 'no repeat was measured',
    why: unmeasuredPoint?.text ?? 'The engine exited without output.',
    fix: outOfMemory
      ? 'Use a smaller --batch-size, --input-len, --output-len or --dtype; inferscope estimate --fits shows what fits.'
      : 'Its log is among the artifacts of the session.',
  });
}
