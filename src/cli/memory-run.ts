import { leftWords } from '../capture/bench/eta.js';
import { refuseAll } from '../capture/bench/refuse-all.js';
import { runMemory, type MemoryRun } from '../capture/memory/run-memory.js';
import type { MemoryTarget } from '../capture/memory/memory-target.js';
import { findPreset } from '../llm/presets.js';
import { benchPoint, type BenchPoint, type BenchProgress } from '../model/bench.js';
import type { Issue } from '../model/document.js';
import type { EngineName, EngineRequest } from '../model/engine.js';
import { InferscopeError } from '../model/errors.js';
import type { MemoryPlan } from '../model/memory-plan.js';
import { redactJson } from '../model/redaction.js';
import { ensureWritable } from '../session/home.js';
import { loadEngine } from './bench-engines.js';
import { planOf, workloadOf } from './bench-manifest.js';
import { chooseMemoryEngine } from './memory-engine.js';
import { findModel } from '../engines/model-files/find-model.js';
import { importMemory } from './memory-import.js';
import type { MemoryOptions } from './memory-options.js';
import { engineRequest, memoryRequest, type MemoryRequest } from './memory-request.js';
import { openTarget } from './memory-target.js';
import type { Progress } from './progress.js';
import { type Recorded, type Recording, recordSession } from '../record/record-session.js';
import { formatMs } from '../vocabulary/format.js';
import { lengthWords } from '../vocabulary/workload.js';

interface SavedMemory {
  id: string;
  folder: string;
  interrupted: boolean;
  /** Why the run stopped early; null for a complete run. */
  failure: InferscopeError | null;
}

const host = 'localhost';

/**
 * Place → engine → run → import → session. Input errors are found before anything is measured; a run that fails, runs
 * out of memory or times out is saved as a partial session.
 */
export async function runMemorySession(
  options: MemoryOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<SavedMemory> {
  const requested = memoryRequest(options);
  const home = ensureWritable();
  progress.update('finding the engine');
  const request = await requestRun(options, requested);
  let target: MemoryTarget | null = null;
  const plan = {
    label: `memory-${request.profile.config.model}`,
    kind: 'memory',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the memory profile',
  };
  const saved = await recordSession(plan, async (recording) => {
    target = await openTarget({
      engine: request.engine,
      request: { ...request.launch, points: [request.point] },
      container: options.container ?? null,
      url: options.url ?? null,
      scratch: recording.scratch,
      signal,
      onProgress: (step, detail) => progress.update(step, detail),
      loadEngine: (name) =>
        loadEngine(name, {
          cacheDir: home.cache,
          seed: options.seed,
          onProgress: (step, detail) => progress.update(step, detail),
        }),
    });
    refuseAll([target.prepared.refusal(request.point)]);
    progress.done(describeRun(target, request.profile.config));
    const run = await measure({ options, request, target }, recording, signal, progress);
    progress.done(run.failure ? `stopped early: ${run.failure.parts.what}` : 'measured');
    const modelConfig = target.prepared.workload.model ? null : await readConfig(request.profile.model);
    progress.update('saving the session');
    const recorded = await recordMemory(recording, { options, request, target, run, modelConfig });
    const interrupted = run.bench.stopped;
    return { ...recorded, result: { interrupted, failure: interrupted ? null : run.failure } };
  }).finally(() => target?.close());
  progress.done('session saved', saved.id);
  return saved;
}

/** What to run, by the options and the chosen engine. */
interface RunRequest {
  /** Null: the container or server knows it. */
  engine: EngineName | null;
  profile: MemoryRequest;
  launch: EngineRequest;
  point: BenchPoint;
  issues: Issue[];
}

async function requestRun(options: MemoryOptions, requested: MemoryRequest): Promise<RunRequest> {
  const { input_len: inputLen, output_len: outputLen } = requested.config;
  const isElsewhere = options.container !== undefined || options.url !== undefined;
  const { engine, issues: choiceIssues } =
    options.engine || isElsewhere
      ? { engine: options.engine ?? null, issues: [] }
      : await chooseMemoryEngine(options);
  const { request, config, issues } = engineRequest(options, requested, engine);
  return {
    engine,
    profile: { ...requested, config },
    launch: request,
    point: benchPoint(['latency'], options.batchSize, inputLen, outputLen),
    issues: [...choiceIssues, ...issues],
  };
}

interface Measurement {
  options: MemoryOptions;
  request: RunRequest;
  target: MemoryTarget;
}

const measure = (
  { options, request: { launch, point }, target }: Measurement,
  recording: Recording,
  signal: AbortSignal,
  progress: Progress,
): Promise<MemoryRun> =>
  runMemory({
    target,
    point,
    model: launch.model,
    dtype: launch.dtype,
    device: launch.device,
    engineArgs: launch.engineArgs,
    seed: options.seed,
    runs: options.runs,
    snapshot: options.snapshot === true,
    timeoutS: options.timeout ?? null,
    scratch: recording.scratch,
    host,
    originNs: recording.originNs,
    signal,
    onProgress: (event, leftS) => showEvent(progress, event, leftWords(leftS)),
  });

/** Dimensions known locally; null without them. */
async function readConfig(model: string): Promise<Record<string, unknown> | null> {
  try {
    return (await findModel(model)).config;
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}

interface Measured extends Measurement {
  run: MemoryRun;
  modelConfig: Record<string, unknown> | null;
}

async function recordMemory(recording: Recording, measured: Measured): Promise<Recorded> {
  const { redact } = recording;
  const { options: typed, request, target, run } = measured;
  const imported = await importMemory(recording, run, target);
  const prepared = {
    request: request.launch,
    parts: ['latency' as const],
    points: [request.point],
    variants: [run.bench.executions[0]!.variant],
  };
  const plan = planOf(prepared, { launches: 1, runs: typed.runs, seed: typed.seed });
  await recording.saveJson('bench-plan', redactJson(plan, redact));
  await recording.saveJson('memory-plan', redactJson(memoryPlan(measured), redact));
  const workload = workloadOf(prepared, imported.model);
  const { hardware, software } = run.bench.facts;
  return {
    title: `memory · ${describeRun(target, request.profile.config)}`,
    status: run.bench.stopped ? 'interrupted' : run.failure ? 'failed' : 'complete',
    workload: { ...workload, engine: redactJson(workload.engine, redact) },
    hardware,
    software,
    executions: imported.executions,
    captures: imported.captures,
    issues: [...request.issues, ...imported.issues],
  };
}

function memoryPlan(measured: Measured): MemoryPlan {
  const { options: typed, request, target, run } = measured;
  const { profile } = request;
  return {
    v: 1,
    execution_id: run.bench.executions[0]!.variant.execution_id,
    config: profile.config,
    where: target.where,
    container_name: target.containerName,
    engine: target.prepared.name,
    given: profile.given,
    config_source: findPreset(profile.model) ? 'preset' : target.prepared.workload.model ? 'config' : 'none',
    model_config: measured.modelConfig,
    seed: typed.seed,
    runs: typed.runs,
    snapshot: typed.snapshot === true,
    timeout_s: typed.timeout ?? null,
    reachable_gpus: target.gpus === null ? null : [...target.gpus],
    samples_here: target.samplesHere,
    ...run.facts,
  };
}

function describeRun({ prepared, containerName }: MemoryTarget, config: MemoryPlan['config']): string {
  const { model, engine, device } = prepared.workload;
  const where = containerName === null ? '' : ` in ${containerName}`;
  const what = model ? `${model.name} (${model.weights} weights, ${model.dtype})` : config.model;
  const shape = `batch ${config.batch_size}, ${lengthWords(config.input_len, config.output_len)}`;
  return `${what} · ${engine.name} ${device}${where} · ${shape}`;
}

function showEvent(progress: Progress, event: BenchProgress, timeLeft: string): void {
  if (event.type === 'phase') {
    const words = { load: 'loading', warmup: 'warming up', timed: 'timing', device_work: 'GPU activity' };
    progress.update(words[event.phase]);
  } else if (event.type === 'iteration') {
    progress.update(event.warmup ? 'warming up' : 'timing', `${timeLeft}${formatMs(event.e2e_ms)}`);
  } else if (event.outcome === 'out_of_memory' || event.outcome === 'failed') {
    progress.done(event.outcome === 'failed' ? 'failed' : 'out of memory', event.text ?? '');
  }
}
