import { join } from 'node:path';
import { requireMemory } from '../capture/onnx/memory-need.js';
import { analyzeProfile } from '../facts/profile.js';
import { rooflineIssues } from '../capture/onnx/machine-roofline.js';
import { captureProfile, type ProfileCapture, type ProfileProgress } from '../capture/onnx/profile.js';
import { defaultThreads } from '../engines/onnx/decoder.js';
import { resolveModel } from '../engines/onnx/model-source.js';
import { loadOnnxRuntime } from '../engines/onnx/runtime.js';
import { detectCpu } from '../hardware/cpu.js';
import { packageVersion } from '../hardware/environment.js';
import type { Document } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import type { ProfileResult } from '../model/documents/profile.js';
import { parseDType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import type { Workload } from '../model/manifest.js';
import { engineWords, modelWords, shapeWords } from '../vocabulary/workload.js';
import { ensureWritable, homeFolders, type Home } from '../session/home.js';
import { openSession } from '../session/open.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { rooflineWithProgress } from './machine-roofs.js';
import { importProfile } from './profile-import.js';
import { startProgress, type Progress } from './progress.js';
import { ensureReportPath, reportPath } from './report-file.js';
import { explanationOf } from '../advice/explain/session-explanation.js';
import { writeAnalyzedReport } from './session-summary.js';
import { type SavedSession, recordSession, writeToHome } from '../record/record-session.js';
import { formatMs, formatPart, plural } from '../vocabulary/format.js';
import { type OnnxModel, modelOfWorkload } from '../engines/onnx/onnx-model.js';

export interface ProfileCommandOptions {
  model: string;
  dtype?: string;
  batchSize: number;
  inputLen: number;
  outputLen: number;
  threads?: number;
  launches: number;
  runs: number;
  seed: number;
  name?: string;
  tag: string[];
  output?: string;
  freshRoofline?: boolean;
  quiet?: boolean;
}

interface ProfileOutcome {
  document: Document<ProfileResult>;
  explain: Document<ExplainResult> | null;
  reportPath: string;
  interrupted: boolean;
}

/**
 * Data flow: model → roofline → capture → import → session → analysis → report. Input errors are found before anything
 * is measured; measurements are saved whatever fails later.
 */
export async function runProfile(
  options: ProfileCommandOptions,
  signal: AbortSignal,
): Promise<ProfileOutcome> {
  const progress = startProgress(options.quiet === true);
  return writeToHome('save the profile', undefined, () => runWithProgress(options, signal, progress)).finally(
    progress.end,
  );
}

async function runWithProgress(
  options: ProfileCommandOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<ProfileOutcome> {
  const home = ensureWritable();
  if (options.output !== undefined) await ensureReportPath(options.output);
  // Not loaded here to save memory; if it is missing, fail before a model is written.
  if (packageVersion('onnxruntime-node') === null) await loadOnnxRuntime();
  const dtype = options.dtype === undefined ? undefined : parseDType(options.dtype);
  const model = await resolveModel(options.model, {
    cacheDir: join(home.cache, 'models'),
    seed: options.seed,
    ...(dtype === undefined ? {} : { dtype }),
    accept: (described) => {
      checkLengths(described, options);
      requireMemory(described, options);
    },
    onProgress: ({ doneBytes, totalBytes }) => {
      if (signal.aborted) throw nothingMeasured();
      progress.update('writing the model', formatPart(doneBytes, totalBytes));
    },
  });
  const threads = options.threads ?? defaultThreads(detectCpu().usableCores);
  const workload = workloadOf(model, options, threads);
  progress.done(modelWords(workload), `${engineWords(workload)} · ${shapeWords(workload)}`);

  const { capture, ...saved } = await measureAndSave(
    options,
    { model, threads, workload, home },
    signal,
    progress,
  );
  try {
    const session = await openSession(saved.id, home);
    const document = await analyzeProfile(session);
    const analyzed = { kind: 'profile', document } as const;
    const explain = await explanationOf(session, analyzed);
    const path = reportPath(saved.folder);
    await writeAnalyzedReport(analyzed, path, explain);
    if (options.output !== undefined) await writeAnalyzedReport(analyzed, options.output, explain);
    progress.done('session saved', saved.id);
    if (capture.failure !== null) throw capture.failure;
    return { document, explain, reportPath: options.output ?? path, interrupted: capture.stopped };
  } catch (error) {
    throw withSession(error, saved.id);
  }
}

/** Adds to an error of a later step where the session was saved. */
function withSession(error: unknown, id: string): unknown {
  const known = asStorageFailure(error, { path: homeFolders().root, doing: 'write the report', home: true });
  if (!(known instanceof InferscopeError)) return known;
  const fix = `${known.parts.fix}\nSession ${id} has what was measured (inferscope report --session ${id}).`;
  return new InferscopeError(known.code, { ...known.parts, fix }, { cause: error });
}

async function measureAndSave(
  options: ProfileCommandOptions,
  run: { model: OnnxModel; threads: number; workload: Workload; home: Home },
  signal: AbortSignal,
  progress: Progress,
): Promise<SavedSession & { capture: ProfileCapture }> {
  const { model, threads, workload, home } = run;
  const plan = {
    label: model.name,
    kind: 'profile',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the profile',
  };
  return recordSession(plan, async (recording) => {
    const roofline = await rooflineWithProgress(progress, {
      threads,
      cacheDir: home.cache,
      fresh: options.freshRoofline === true,
      signal,
    });
    const capture = await captureProfile({
      model,
      threads,
      batchSize: options.batchSize,
      inputLen: options.inputLen,
      outputLen: options.outputLen,
      seed: options.seed,
      launches: options.launches,
      repeats: options.runs,
      scratch: recording.scratch,
      host: 'localhost',
      signal,
      onProgress: (event) => showProgress(progress, event),
    });
    if (capture.clean.timedRepeats === 0) throw capture.failure ?? nothingMeasured();
    progress.done('measured', measuredWords(capture));
    progress.update('saving the session');
    const imported = await importProfile(recording, capture, roofline);
    return {
      title: `${modelWords(workload)} · ${engineWords(workload)} · ${shapeWords(workload)}`,
      status: capture.failure !== null ? 'failed' : capture.stopped ? 'interrupted' : 'complete',
      workload,
      executions: imported.executions,
      captures: imported.captures,
      issues: [...imported.issues, ...rooflineIssues(roofline)],
      result: { capture },
    };
  });
}

function checkLengths(model: OnnxModel, { inputLen, outputLen }: ProfileCommandOptions): void {
  const contextLen = inputLen + outputLen;
  if (model.maxContext === null || contextLen <= model.maxContext) return;
  throw new InferscopeError('E_LENGTHS', {
    what: `--input-len ${inputLen} and --output-len ${outputLen} exceed the context of ${model.name}`,
    why: `Its maximum context is ${plural(model.maxContext, 'token')}, prompt and output together.`,
    fix: `Reduce --input-len or --output-len to a sum of at most ${model.maxContext}.`,
  });
}

function workloadOf(model: OnnxModel, options: ProfileCommandOptions, threads: number): Workload {
  return {
    model: modelOfWorkload(model),
    engine: {
      name: 'onnxruntime',
      version: packageVersion('onnxruntime-node'),
      options: { kv_cache: model.kvCache, logits: model.logits },
    },
    device: 'cpu',
    threads,
    batch_size: options.batchSize,
    input_len: options.inputLen,
    output_len: options.outputLen,
    tensor_parallel_size: 1,
  };
}

function showProgress(progress: Progress, event: ProfileProgress): void {
  const where =
    event.execution === 'clean' ? `clean launch ${event.launch + 1}/${event.launches}` : 'profiled pass';
  const what =
    event.type === 'phase'
      ? { load: 'loading', warmup: 'warming up', timed: 'timing' }[event.phase]
      : `${event.warmup ? 'warm-up' : 'repeat'} ${formatMs(event.e2eMs)}`;
  progress.update(where, what);
}

function measuredWords({ clean, profiled }: ProfileCapture): string {
  const profilerNote = profiled && profiled.runs.length > 0 ? ', then under the profiler' : '';
  const launches = clean.runs.length === 1 ? '1 launch' : `${clean.runs.length} launches`;
  return `${plural(clean.timedRepeats, 'clean repeat')} in ${launches}${profilerNote}`;
}

function nothingMeasured(): InferscopeError {
  return new InferscopeError('E_INTERRUPTED', {
    what: 'stopped before the first timed repeat',
    why: 'Nothing was measured yet, so no session was saved.',
    fix: 'Run it again, with fewer --launches or a shorter --output-len if it takes too long.',
  });
}
