import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import type { BenchOrder, BenchPoint, PointOutcome } from '../../model/bench.js';
import type { EngineLaunch, LaunchControl } from '../../model/engine.js';
import { InferscopeError } from '../../model/errors.js';
import { startEngineProcess, type EngineProcess } from '../onnx/engine-process.js';
import type { WorkloadPlan, WorkloadPoint, WorkloadProgress, WorkloadResult } from '../onnx/plan.js';
import { recordVariable, recordWriter } from '../record-writer.js';
import type { OnnxArgs } from './onnx-args.js';
import { dropCutOffLine } from './record-file.js';
import { pointLabel } from '../../vocabulary/bench.js';

interface LaunchedModel {
  model: OnnxModel;
  threads: number;
  args: OnnxArgs;
}

/** State of a launch: the current point of its process, and the remaining points. */
interface LaunchState {
  currentPoint: string | null;
  timedRepeats: Map<string, number>;
  ended: Map<string, PointOutcome>;
  lastIteration: number;
}

/**
 * One launch of the embedded engine. If its process dies, its current point is recorded as out of memory (SIGKILL) or failed,
 * points that need more memory than one that ran out of it are skipped, and another process continues with the rest.
 */
export function launchOnnx(launched: LaunchedModel, order: BenchOrder, control: LaunchControl): EngineLaunch {
  const state: LaunchState = {
    currentPoint: null,
    timedRepeats: new Map(),
    ended: new Map(),
    lastIteration: order.first_iteration - 1,
  };
  let current = start(launched, order, control, order.points.map(remainingPoint(order, state)), state);
  return {
    get pid() {
      return current.pid;
    },
    ended: run(),
  };

  async function run(): Promise<{ failure: unknown; log: string | null }> {
    for (;;) {
      try {
        await current.result;
        return { failure: null, log: null };
      } catch (failure) {
        const failedPoint = state.currentPoint;
        const stopped = failure instanceof InferscopeError && failure.code === 'E_INTERRUPTED';
        if (stopped || failedPoint === null || control.signal.aborted) return { failure, log: null };
        dropCutOffLine(control.recordPath);
        endPoint(order, control, state, failedPoint, failure);
        const remaining = order.points
          .filter(({ point }) => !state.ended.has(point))
          .map(remainingPoint(order, state));
        if (remaining.length === 0) return { failure: null, log: null };
        state.currentPoint = null;
        // Its last iteration may have been recorded without a progress message.
        state.lastIteration++;
        current = start(launched, order, control, remaining, state);
      }
    }
  }
}

function remainingPoint(order: BenchOrder, state: LaunchState) {
  return ({ point, batch_size, input_len, output_len }: BenchPoint): WorkloadPoint => ({
    point,
    batchSize: batch_size,
    inputLen: input_len,
    outputLen: output_len,
    repeats: Math.max(1, order.repeats - (state.timedRepeats.get(point) ?? 0)),
  });
}

function start(
  { model, threads, args }: LaunchedModel,
  order: BenchOrder,
  control: LaunchControl,
  points: WorkloadPoint[],
  state: LaunchState,
): EngineProcess<WorkloadResult> {
  const plan: WorkloadPlan = {
    model,
    threads,
    points,
    seed: order.seed,
    executionId: order.execution_id,
    launch: order.launch,
    firstIteration: state.lastIteration + 1,
    warmup: order.warmup,
    profilePrefix: null,
    ...(args.graphOptimization === undefined ? {} : { graphOptimization: args.graphOptimization }),
  };
  return startEngineProcess<WorkloadPlan, WorkloadProgress, WorkloadResult>('onnx-workload', plan, {
    what: `launch ${order.launch + 1} of ${model.name}`,
    env: { [recordVariable]: control.recordPath },
    signal: control.signal,
    onProgress: (progress) => {
      if (progress.type === 'begin') state.currentPoint = progress.point;
      else if (progress.type === 'phase') control.onProgress(progress);
      else if (progress.type === 'point') {
        state.ended.set(progress.point, progress.outcome);
        control.onProgress(progress);
      } else if (progress.point !== null) {
        const { point, iteration, warmup, e2eMs } = progress;
        state.lastIteration = iteration;
        if (!warmup) state.timedRepeats.set(point, (state.timedRepeats.get(point) ?? 0) + 1);
        control.onProgress({ type: 'iteration', point, iteration, warmup, e2e_ms: e2eMs });
      }
    },
  });
}

/** Records, for a process that died, the outcome of its current point. */
function endPoint(
  order: BenchOrder,
  control: LaunchControl,
  state: LaunchState,
  point: string,
  failure: unknown,
): void {
  const known = failure instanceof InferscopeError ? failure : null;
  const outOfMemory = known?.code === 'E_OUT_OF_MEMORY';
  const text = known ? `${known.parts.what}: ${known.parts.why}` : String(failure);
  const record = recordWriter(control.recordPath, order.execution_id);
  const recordOutcome = (ended: string, outcome: PointOutcome, why: string) => {
    state.ended.set(ended, outcome);
    record.add({ type: 'point', point: ended, launch: order.launch, outcome, text: why });
    control.onProgress({ type: 'point', point: ended, outcome, text: why });
  };
  recordOutcome(point, outOfMemory ? 'out_of_memory' : 'failed', text);
  const killedPoint = order.points.find((candidate) => candidate.point === point);
  for (const other of outOfMemory && killedPoint ? order.points : [])
    if (!state.ended.has(other.point) && needsMore(other, killedPoint!))
      recordOutcome(
        other.point,
        'skipped',
        `It needs more memory than ${pointLabel(point)}, where the engine was killed.`,
      );
  record.flush();
}

/** Whether a point is at least as large in every size, so that it would be killed too. */
function needsMore(point: BenchPoint, than: BenchPoint): boolean {
  return (
    point.batch_size >= than.batch_size &&
    point.input_len >= than.input_len &&
    point.output_len >= than.output_len
  );
}
