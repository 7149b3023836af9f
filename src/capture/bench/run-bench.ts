import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchOrder, BenchPoint, BenchProgress } from '../../model/bench.js';
import type { Issue } from '../../model/document.js';
import type { EngineLaunch, LaunchControl, PreparedEngine } from '../../model/engine.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import type { Row } from '../../model/tables.js';
import { gpuFacts, type GpuFacts, openGpus, type Gpus } from '../telemetry-gpus.js';
import { passOnRecord } from '../outer-run.js';
import { recordWriter } from '../record-writer.js';
import { monotonicNs } from '../../model/clock.js';
import { waitForFreedMemory, readUsedMemory } from '../run/memory-cleared.js';
import { startEta } from './eta.js';
import { sampleLaunch } from './launch-samplers.js';
import { dropCutOffLine, readRecordedFacts, type RecordedFacts } from './record-file.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** One engine configuration: an execution of the session. */
export interface VariantPlan {
  execution_id: string;
  /** `defaults`, or the engine arguments that differ, e.g. mode=cudagraph. */
  label: string;
  engine_args: Record<string, string>;
  prepared: PreparedEngine;
  points: BenchPoint[];
}

interface BenchOptions {
  variants: VariantPlan[];
  launches: number;
  /** Timed repeats of every point in each launch. */
  repeats: number;
  /** As the engine accepts it. */
  model: string;
  dtype: string | null;
  device: string | null;
  seed: number;
  device_work: boolean;
  /** Folder for records and other files of launches. */
  scratch: string;
  host: string;
  signal: AbortSignal;
  onProgress: (event: BenchEvent) => void;
  /** Samples of a launch, delivered between launches; t_ns is CLOCK_MONOTONIC. Hours of samples would not fit in memory. */
  onRows: (rows: { telemetry: Row<'telemetry'>[]; memory: Row<'memory'>[] }) => void;
}

export interface BenchEvent {
  variant: VariantPlan;
  launch: number;
  progress: BenchProgress | { type: 'launch' };
  /** Seconds left; null before anything is known. */
  leftS: number | null;
}

interface BenchLaunch {
  launch: number;
  failure: unknown;
  log: string | null;
  /** Captures of the samplers with data. */
  sampled: string[];
  issues: Issue[];
}

export interface BenchExecution {
  variant: VariantPlan;
  recordPath: string;
  /** Bytes of it that the surrounding run also has (passOnRecord). */
  passedOn?: number;
  launches: BenchLaunch[];
  start_ns: number;
  end_ns: number;
  recorded: RecordedFacts;
}

export interface BenchCapture {
  executions: BenchExecution[];
  issues: Issue[];
  /** GPUs of this machine; a remote server has different ones. */
  facts: GpuFacts;
  stopped: boolean;
}

/** Warm-up of every point: until two repeats in a row are within 5 % of each other. */
export const benchWarmup = { min: 2, max: 5, within: 0.05 };

/**
 * Launches every variant `launches` times, in turn (launch 0 of all, then launch 1, …), so that drift of the machine
 * affects all equally, and samples host and GPUs during each. Nothing is retried. A point that ran out of memory is skipped
 * in later launches. Never throws for a failed launch.
 * @throws the engine's own error when nothing was measured, E_INTERRUPTED on Ctrl-C before the first timed repeat
 */
export async function runBench(options: BenchOptions): Promise<BenchCapture> {
  const { variants, launches, signal } = options;
  const { gpus } = await openGpus();
  const capture: BenchCapture = {
    executions: [],
    issues: [],
    facts: gpuFacts(gpus),
    stopped: false,
  };
  const eta = startEta(variants, options);
  try {
    const before = gpus ? readUsedMemory(gpus) : null;
    for (let launch = 0; launch < launches && !signal.aborted; launch++) {
      for (const [index, variant] of variants.entries()) {
        if (signal.aborted) break;
        const execution = (capture.executions[index] ??= startExecution(variant, options));
        const points = openPoints(execution);
        if (points.length === 0) continue;
        if (launch + index > 0) {
          const issue = await waitForFreedMemory(gpus, before, signal);
          if (issue) capture.issues.push(issue);
        }
        eta.startLaunch(variant.execution_id, launch);
        const report = (progress: BenchEvent['progress']) =>
          options.onProgress({ variant, launch, progress, leftS: eta.secondsLeft() });
        report({ type: 'launch' });
        await runLaunch(execution, launch, points, { gpus, options }, (progress) => {
          const { execution_id: id } = variant;
          if (progress.type === 'iteration') eta.addIteration(id, launch, progress.point, progress.e2e_ms);
          else if (progress.type === 'point') eta.closePoint(id, launch, progress.point);
          report(progress);
        });
        eta.endLaunch(variant.execution_id, launch);
      }
    }
  } finally {
    gpus?.close();
  }
  capture.stopped = signal.aborted;
  if (capture.executions.every(({ recorded }) => recorded.timed === 0)) throw nothingMeasured(capture);
  return capture;
}

function startExecution(variant: VariantPlan, { scratch }: BenchOptions): BenchExecution {
  const recordPath = join(scratch, `${variant.execution_id}.jsonl`);
  const now = monotonicNs();
  const record = recordWriter(recordPath, variant.execution_id);
  for (const point of variant.points) {
    const text = variant.prepared.refusal(point);
    if (text !== null) record.add({ type: 'point', point: point.point, launch: 0, outcome: 'skipped', text });
  }
  record.flush();
  const recorded: RecordedFacts = { timed: 0, lastIteration: -1, outOfMemory: new Set(), unmeasured: [] };
  return { variant, recordPath, launches: [], start_ns: now, end_ns: now, recorded };
}

/**
 * Points still to measure, without rejected ones and those that ran out of memory before. Empty after a launch that failed before any
 * timed repeat: the next launch would fail too.
 */
function openPoints({ variant, recorded, launches }: BenchExecution): BenchPoint[] {
  if (recorded.timed === 0 && launches.some(({ failure }) => failure !== null)) return [];
  const skipped = new Set(
    recorded.unmeasured.filter(({ outcome }) => outcome === 'skipped').map(({ point }) => point),
  );
  return variant.points.filter(
    (point) =>
      !skipped.has(point.point) &&
      !recorded.outOfMemory.has(point.point) &&
      variant.prepared.refusal(point) === null,
  );
}

async function runLaunch(
  execution: BenchExecution,
  launch: number,
  points: BenchPoint[],
  { gpus, options }: { gpus: Gpus | null; options: BenchOptions },
  onProgress: (progress: BenchProgress) => void,
): Promise<void> {
  const { variant, recordPath } = execution;
  const { execution_id, engine_args, prepared } = variant;
  const scratch = join(options.scratch, `${execution_id}-launch-${launch}`);
  await mkdir(scratch, { recursive: true });
  const order: BenchOrder = {
    v: 1,
    execution_id,
    launch,
    first_iteration: firstIteration(execution, launch, options),
    model: options.model,
    weights: prepared.workload.model?.weights === 'trained' ? 'trained' : 'random',
    dtype: options.dtype,
    device: options.device,
    engine_args,
    points,
    repeats: options.repeats,
    warmup: benchWarmup,
    // Once is enough, since it is used for shares and not for intervals.
    device_work: options.device_work && launch === 0,
    seed: options.seed,
  };
  const started = launchSafely(prepared, order, { recordPath, scratch, signal: options.signal, onProgress });
  const samplers = sampleLaunch(started, gpus, { execution_id, host: options.host });
  const { failure, log } = await started.ended.catch((error: unknown) => ({ failure: error, log: null }));
  const { issues, ...rows } = samplers.stop();
  options.onRows(rows);
  const sampled = [...new Set([...rows.telemetry, ...rows.memory].map((row) => row.capture_id!))];
  execution.launches.push({ launch, failure, log, sampled, issues });
  execution.end_ns = monotonicNs();
  dropCutOffLine(recordPath);
  execution.passedOn = passOnRecord(recordPath, execution.passedOn);
  execution.recorded = await readRecordedFacts(recordPath);
}

/** A process that cannot be started is a failed launch. */
function launchSafely(prepared: PreparedEngine, order: BenchOrder, control: LaunchControl): EngineLaunch {
  try {
    return prepared.launch(order, control);
  } catch (failure) {
    return { pid: null, ended: Promise.resolve({ failure, log: null }) };
  }
}

/** The first iteration number after all that earlier launches may have used, by plan and by record. */
function firstIteration({ variant, recorded }: BenchExecution, launch: number, { repeats }: BenchOptions) {
  const perLaunch = variant.points.length * (benchWarmup.max + repeats + 1);
  return Math.max(launch * perLaunch, recorded.lastIteration + 1);
}

function nothingMeasured({ executions, stopped }: BenchCapture): InferscopeError {
  if (stopped) {
    return new InferscopeError('E_INTERRUPTED', {
      what: 'stopped before the first timed repeat',
      why: 'There are no results yet, so no session was saved.',
      fix: 'Run it again; use fewer points, --launches or --runs if it takes too long.',
    });
  }
  const failure = executions
    .flatMap(({ launches }) => launches.map((launch) => launch.failure))
    .find((candidate) => candidate !== null);
  if (failure instanceof InferscopeError) return failure;
  const [unmeasured] = executions.flatMap(({ recorded }) => recorded.unmeasured);
  const outOfMemory = executions.some(({ recorded }) => recorded.outOfMemory.size > 0);
  const [execution] = executions;
  return new InferscopeError(outOfMemory ? 'E_OUT_OF_MEMORY' : 'E_WORKLOAD_FAILED', {
    what: unmeasured
      ? `no point could be measured (${pointLabel(unmeasured.point)}: ${unmeasured.outcome})`
      : 'nothing was measured',
    why: unmeasured?.text ?? (failure === undefined ? lastLogLines(execution) : messageOf(failure)),
    fix: outOfMemory
      ? 'Use a smaller --batch-size, --input-len or model.'
      : 'Try one small point first: inferscope bench latency --input-len 8 --output-len 4 --launches 1',
  });
}

function lastLogLines(execution: BenchExecution | undefined): string {
  const log = execution?.launches.at(-1)?.log?.trim();
  return log ? log.split('\n').slice(-5).join('\n') : 'The engine exited without output.';
}
