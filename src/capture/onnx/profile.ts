import { join } from 'node:path';
import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { passOnRecord } from '../outer-run.js';
import { monotonicNs } from '../../model/clock.js';
import type { WorkloadPlan, WorkloadProgress } from './plan.js';
import { runWorkload, type WorkloadRun } from './run-workload.js';

interface ProfileOptions {
  model: OnnxModel;
  threads: number;
  batchSize: number;
  inputLen: number;
  outputLen: number;
  seed: number;
  /** Process launches of the clean execution; the interval is over them. */
  launches: number;
  /** Timed repeats in each launch. */
  repeats: number;
  /** Where records and the trace are written. */
  scratch: string;
  host: string;
  signal: AbortSignal;
  onProgress: (progress: ProfileProgress) => void;
}

export type ProfileProgress = {
  execution: 'clean' | 'profiled';
  launch: number;
  launches: number;
} & Extract<WorkloadProgress, { type: 'phase' | 'iteration' }>;

export interface ProfiledExecution {
  executionId: 'clean' | 'profiled';
  recordPath: string;
  /** Bytes of it that the surrounding run also has (passOnRecord). */
  passedOn?: number;
  /** Launches in order; the last one may have failed. */
  runs: WorkloadRun[];
  /** Timed repeats completed, including those of a launch that failed later. */
  timedRepeats: number;
  start_ns: number;
  end_ns: number;
}

export interface ProfileCapture {
  clean: ProfiledExecution;
  /** Null when the run was stopped or failed before it. */
  profiled: ProfiledExecution | null;
  outputLen: number;
  /** Output length of the profiled execution, shorter than requested when the trace would grow too large. */
  profiledOutputLen: number;
  stopped: boolean;
  /** What stopped the capture early; executions hold what was recorded until then. */
  failure: unknown;
}

/** Timed repeats under the profiler: attribution needs proportions, not intervals. */
const profiledRepeats = 2;
/** The runtime writes about 900 bytes per operator; this limits the trace to about 100 MB. */
const maxTraceOperators = 120_000;

/**
 * Clean launches first, without a profiler, then one launch under the runtime's operator trace: timing is taken from
 * the clean execution, attribution from the profiled one. Never throws for a workload that failed or was stopped.
 */
export async function captureProfile(options: ProfileOptions): Promise<ProfileCapture> {
  const clean = execution('clean', options);
  const capture: ProfileCapture = {
    clean,
    profiled: null,
    outputLen: options.outputLen,
    profiledOutputLen: profiledOutputLen(options),
    stopped: false,
    failure: null,
  };
  try {
    for (let launch = 0; launch < options.launches && !options.signal.aborted; launch++) {
      await addLaunch(clean, options, {
        launch,
        firstIteration: launch * (options.repeats + maxWarmup),
        warmup: { min: 2, max: maxWarmup, within: stableWithin },
        repeats: options.repeats,
        outputLen: options.outputLen,
        profilePrefix: null,
      });
    }
    if (!options.signal.aborted) {
      capture.profiled = execution('profiled', options);
      await addLaunch(capture.profiled, options, {
        launch: 0,
        firstIteration: 0,
        warmup: { min: 1, max: 1, within: stableWithin },
        repeats: profiledRepeats,
        outputLen: capture.profiledOutputLen,
        profilePrefix: join(options.scratch, 'ort'),
      });
    }
  } catch (error) {
    const interrupted = error instanceof InferscopeError && error.code === 'E_INTERRUPTED';
    if (!interrupted) capture.failure = error;
  }
  capture.stopped = options.signal.aborted;
  return capture;
}

const maxWarmup = 5;
/** Two successive repeats within 5 % of each other count as warmed up. */
const stableWithin = 0.05;

function execution(executionId: 'clean' | 'profiled', { scratch }: ProfileOptions): ProfiledExecution {
  const now = monotonicNs();
  return {
    executionId,
    recordPath: join(scratch, `${executionId}.jsonl`),
    runs: [],
    timedRepeats: 0,
    start_ns: now,
    end_ns: now,
  };
}

type Launch = Pick<WorkloadPlan, 'launch' | 'firstIteration' | 'warmup' | 'profilePrefix'> & {
  repeats: number;
  outputLen: number;
};

async function addLaunch(target: ProfiledExecution, options: ProfileOptions, launch: Launch): Promise<void> {
  const { model, threads, batchSize, inputLen, seed, host, signal } = options;
  const { repeats, outputLen, ...settings } = launch;
  const points = [{ point: null, batchSize, inputLen, outputLen, repeats }];
  const run = await runWorkload(
    { model, threads, points, seed, executionId: target.executionId, ...settings },
    {
      recordPath: target.recordPath,
      captureId: `${target.executionId}-host`,
      host,
      signal,
      onProgress: (progress) => {
        if (progress.type !== 'iteration' && progress.type !== 'phase') return;
        if (progress.type === 'iteration' && !progress.warmup) target.timedRepeats++;
        options.onProgress({
          execution: target.executionId,
          launch: launch.launch,
          launches: target.executionId === 'clean' ? options.launches : 1,
          ...progress,
        });
      },
    },
  );
  target.runs.push(run);
  if (target.executionId === 'clean') target.passedOn = passOnRecord(target.recordPath, target.passedOn);
  target.end_ns = monotonicNs();
  if (run.failure !== null) throw run.failure;
}

function profiledOutputLen({ model, outputLen }: ProfileOptions): number {
  const layers = Number(model.config['num_hidden_layers'] ?? model.config['n_layer'] ?? 12);
  // The engine's generated models have 12 operators per layer and 11 outside; exports have more.
  const perStep = 14 * layers + 12;
  return Math.min(outputLen, Math.max(2, Math.floor(maxTraceOperators / perStep / (profiledRepeats + 1))));
}

/** One line for the issues of a session that stopped early. */
export function failureText(failure: unknown): string {
  return `The run stopped early: ${messageOf(failure)}`;
}
