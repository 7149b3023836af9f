import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Decoder } from '../../engines/onnx/decoder.js';
import { randomPrompt } from '../../engines/onnx/random-prompt.js';
import type { PointOutcome } from '../../model/bench.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import type { RecordWriter } from '../record-writer.js';
import { generate, type Generation } from './generate.js';
import type { WorkloadPlan, WorkloadPoint, WorkloadProgress } from './plan.js';
import { bySize, interleaved } from './point-order.js';
import { processMemory, resetPeak } from './process-memory.js';
import { recordGeneration } from './record-generation.js';

interface MeasureContext {
  record: RecordWriter;
  stopped: () => boolean;
  report: (progress: WorkloadProgress) => void;
  /** Between warm-up and timed repeats. */
  onWarm: () => void;
}

/** State of a point: open while it has no outcome. */
interface PointState extends WorkloadPoint {
  done: number;
  outcome: PointOutcome | null;
  warmupIterations: number;
  stable: boolean;
  memory: { bytes: number; source: string } | null;
}

interface MeasuredPoints {
  warmupIterations: number;
  stable: boolean;
  /** Highest resident set seen if the kernel's mark was reset in between; null if the mark is valid. */
  peakRssBytes: number | null;
}

/**
 * Warms up every point, small ones first, then times all of them in turn. If a point fails or runs out of memory, a
 * `point` line records why, and the others go on; in a profile (a point without a name) its error is thrown.
 */
export async function measurePoints(
  decoder: Decoder,
  plan: Pick<
    WorkloadPlan,
    'points' | 'warmup' | 'seed' | 'launch' | 'firstIteration' | 'model' | 'profilePrefix'
  >,
  { record, stopped, report, onWarm }: MeasureContext,
): Promise<MeasuredPoints> {
  const points = plan.points.map((point): PointState => ({
    ...point,
    done: 0,
    outcome: null,
    warmupIterations: 0,
    stable: false,
    memory: null,
  }));
  let iteration = plan.firstIteration;
  let peakRssBytes: number | null = null;

  report({ type: 'phase', phase: 'warmup' });
  for (const point of bySize(points)) await attempt(point, () => warmUp(point));
  // Without a point that warmed up there is no such moment, and its memory would be that of the failed attempts.
  if (!stopped() && points.some(({ outcome }) => outcome === null)) {
    onWarm();
    report({ type: 'phase', phase: 'timed' });
  }
  record.flush();

  for (const point of interleaved(points, plan.launch)) {
    if (stopped()) break;
    if (point.outcome !== null) continue;
    await attempt(point, async () => {
      if (!(await iterate(point, false))) return;
      point.done++;
      if (point.done === point.repeats) end(point, 'measured', null);
    });
  }
  for (const point of points)
    if (point.outcome === null)
      end(point, 'stopped', `Stopped after ${point.done} of ${point.repeats} timed repeats.`);
  return {
    warmupIterations: points.reduce((sum, point) => sum + point.warmupIterations, 0),
    stable: points.every(({ stable }) => stable),
    peakRssBytes,
  };

  async function attempt(point: PointState, work: () => Promise<void>): Promise<void> {
    if (point.point !== null) report({ type: 'begin', point: point.point });
    try {
      await work();
    } catch (error) {
      if (point.point === null) throw error;
      const outOfMemory = error instanceof InferscopeError && error.code === 'E_OUT_OF_MEMORY';
      const why = error instanceof InferscopeError ? `${error.parts.what}: ${error.parts.why}` : null;
      end(point, outOfMemory ? 'out_of_memory' : 'failed', why ?? messageOf(error));
      decoder.reset();
    }
  }

  async function warmUp(point: PointState): Promise<void> {
    const watch = point.point === null ? null : watchMemory();
    let before: number | null = null;
    while (point.warmupIterations < plan.warmup.max && !stopped()) {
      const generation = await iterate(point, true);
      if (!generation) break;
      point.warmupIterations++;
      const durationNs = generation.end_ns - generation.start_ns;
      point.stable = before !== null && Math.abs(durationNs - before) <= plan.warmup.within * before;
      if (point.stable && point.warmupIterations >= plan.warmup.min) break;
      before = durationNs;
    }
    if (!watch) return;
    const { peak, pointMemory } = watch();
    point.memory = pointMemory;
    peakRssBytes = Math.max(peak ?? 0, peakRssBytes ?? 0) || null;
  }

  async function iterate(point: PointState, warmup: boolean): Promise<Generation | null> {
    const { batchSize, inputLen, outputLen } = point;
    decoder.reserve(batchSize, inputLen + outputLen);
    const vocabSize = Number(plan.model.config['vocab_size']);
    const prompts = randomPrompt({ batchSize, inputLen, vocabSize, seed: plan.seed, iteration });
    const generation = await generate(decoder, prompts, outputLen, stopped);
    if (!generation) return null;
    recordGeneration(record, { launch: plan.launch, point }, generation, iteration, warmup);
    const e2eMs = (generation.end_ns - generation.start_ns) / 1e6;
    report({ type: 'iteration', point: point.point, iteration, warmup, e2eMs });
    iteration++;
    return generation;
  }

  function end(point: PointState, outcome: PointOutcome, text: string | null): void {
    point.outcome = outcome;
    if (point.point === null) return;
    record.add({
      type: 'point',
      point: point.point,
      launch: plan.launch,
      outcome,
      text,
      warmup_iterations: point.warmupIterations,
      stable: point.stable,
      interleaved: true,
      memory_bytes: point.memory?.bytes ?? null,
      memory_source: point.memory?.source ?? null,
    });
    record.flush();
    report({ type: 'point', point: point.point, outcome, text });
  }
}

/**
 * A point's memory is the highest resident set during its warm-up. It can be distinguished from that of earlier points only
 * if it rose above what they left: the runtime keeps all memory it has allocated.
 */
function watchMemory(): () => { peak: number | null; pointMemory: PointState['memory'] } {
  collectGarbage();
  const before = processMemory();
  const reset = resetPeak();
  return () => {
    const { peakRssBytes: peak, source } = processMemory();
    const base = reset ? before.rssBytes : before.peakRssBytes;
    const hasRisen = peak !== null && base !== null && peak > base;
    return {
      peak,
      pointMemory: hasRisen ? { bytes: peak, source: `${source} VmHWM, in its warm-up` } : null,
    };
  };
}

/** Otherwise caches of smaller points would still be allocated, depending on V8's schedule. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
