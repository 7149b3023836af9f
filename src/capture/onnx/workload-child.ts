import process from 'node:process';
import { openDecoder } from '../../engines/onnx/decoder.js';
import { randomPrompt } from '../../engines/onnx/random-prompt.js';
import { packageVersion } from '../../hardware/environment.js';
import { monotonicNs, recordVariable, recordWriter, type RecordWriter } from '../record-writer.js';
import { generate, type Generation } from './generate.js';
import { serveEngineProcess } from './engine-process.js';
import type { WorkloadPlan, WorkloadProgress, WorkloadResult } from './plan.js';
import { processMemory } from './process-memory.js';

/** Runs one launch of the workload; figures go to the record file, progress to the parent. */

interface Context {
  stopped: () => boolean;
  tell: (progress: WorkloadProgress) => void;
}

serveEngineProcess<WorkloadPlan, WorkloadProgress, WorkloadResult>(run);

async function run(plan: WorkloadPlan, { stopped, tell }: Context): Promise<WorkloadResult> {
  const { model, threads, batchSize, inputLen, outputLen } = plan;
  const record = recordWriter(process.env[recordVariable]!, plan.executionId);
  record.clock();
  memoryPoint(record, 'baseline');
  record.add({
    type: 'model',
    name: model.name,
    config: model.config,
    dtype: model.dtype,
    quantization: model.quantization,
    weights: model.weights,
    weight_bytes: model.weight_bytes,
    tensor_parallel_size: 1,
    engine: { name: 'onnxruntime', version: packageVersion('onnxruntime-node') },
    device: 'cpu',
    threads,
  });
  record.flush();

  tell({ type: 'phase', phase: 'load' });
  const loadStart = monotonicNs();
  const decoder = await openDecoder(model, {
    threads,
    contextLen: inputLen + outputLen,
    ...(plan.profilePrefix === null ? {} : { profilePrefix: plan.profilePrefix }),
  });
  record.add({ type: 'stage', kind: 'load', name: 'load', ...wholeStage(loadStart) });

  let iteration = plan.firstIteration;
  const iterate = async (warmup: boolean): Promise<Generation | null> => {
    const prompts = randomPrompt({
      batchSize,
      inputLen,
      vocabSize: Number(model.config['vocab_size']),
      seed: plan.seed,
      iteration,
    });
    const generation = await generate(decoder, prompts, outputLen, stopped);
    if (!generation) return null;
    recordGeneration(record, plan, generation, iteration, warmup);
    const e2eMs = (generation.end_ns - generation.start_ns) / 1e6;
    tell({ type: 'iteration', iteration, warmup, e2eMs });
    iteration++;
    return generation;
  };

  tell({ type: 'phase', phase: 'warmup' });
  const { iterations: warmupIterations, stable } = await warmUp(plan.warmup, stopped, () => iterate(true));
  memoryPoint(record, 'post_warmup');
  record.flush();

  tell({ type: 'phase', phase: 'timed' });
  for (let repeat = 0; repeat < plan.repeats && !stopped(); repeat++) await iterate(false);

  memoryPoint(record, 'peak');
  const tracePath = plan.profilePrefix === null ? null : await decoder.endProfiling();
  record.clock();
  record.flush();
  await decoder.release();
  return { stopped: stopped(), tracePath, warmupIterations, stable };
}

/** Two successive repeats within 5 % of each other count as warmed up. */
const stableWithin = 0.05;

async function warmUp(
  { min, max }: WorkloadPlan['warmup'],
  stopped: () => boolean,
  iterate: () => Promise<Generation | null>,
): Promise<{ iterations: number; stable: boolean }> {
  let before: number | null = null;
  let iterations = 0;
  while (iterations < max && !stopped()) {
    const generation = await iterate();
    if (!generation) break;
    iterations++;
    const took = generation.end_ns - generation.start_ns;
    const stable = before !== null && Math.abs(took - before) <= stableWithin * before;
    if (stable && iterations >= min) return { iterations, stable };
    before = took;
  }
  return { iterations, stable: false };
}

function recordGeneration(
  record: RecordWriter,
  plan: WorkloadPlan,
  generation: Generation,
  iteration: number,
  warmup: boolean,
): void {
  for (const stage of generation.stages) {
    record.add({
      type: 'stage',
      kind: stage.kind,
      name: `inferscope:${stage.kind}:${iteration}:${stage.step ?? 0}`,
      t_ns: stage.start_ns,
      end_ns: stage.end_ns,
      iteration,
      step: stage.step,
      batch_size: plan.batchSize,
      new_tokens: stage.newTokens,
      context_tokens_sum: stage.contextTokensSum,
      warmup,
    });
  }
  record.add({
    type: 'request',
    t_ns: generation.start_ns,
    iteration,
    launch: plan.launch,
    warmup,
    batch_size: plan.batchSize,
    input_len: plan.inputLen,
    output_len: plan.outputLen,
    first_token_ns: generation.first_token_ns,
    end_ns: generation.end_ns,
  });
  record.flush();
}

function wholeStage(t_ns: number) {
  return {
    t_ns,
    end_ns: monotonicNs(),
    iteration: null,
    step: null,
    batch_size: null,
    new_tokens: null,
    context_tokens_sum: null,
    warmup: false,
  };
}

function memoryPoint(record: RecordWriter, point: 'baseline' | 'post_warmup' | 'peak'): void {
  const { rssBytes, peakRssBytes, source } = processMemory();
  const isPeak = point === 'peak' && peakRssBytes !== null;
  record.add({
    type: 'memory',
    device: null,
    kind: isPeak ? 'peak_rss' : 'rss',
    bytes: isPeak ? peakRssBytes : rssBytes,
    point,
    source: isPeak ? `${source} VmHWM` : `${source} VmRSS`,
  });
}
