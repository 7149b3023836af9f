import { onCpu, remoteDevice } from '../facts/bench/machine.js';
import { runBench, type BenchCapture, type BenchEvent } from '../capture/bench/run-bench.js';
import { leftWords } from '../capture/bench/eta.js';
import { pointLabel } from '../vocabulary/bench.js';
import { rooflineIssues, type CachedRoofline } from '../capture/onnx/machine-roofline.js';
import type { BenchPart } from '../model/bench.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import { redactJson } from '../model/redaction.js';
import { ensureWritable } from '../session/home.js';
import { attachGpuRoofline } from './attach-roofline.js';
import { importBench, isInterruption } from './bench-import.js';
import { saveRoofline } from './save-roofline.js';
import { rooflineWithProgress } from './machine-roofs.js';
import { labelOf, planOf, threadsOf, titleOf, workloadOf } from './bench-manifest.js';
import { prepareBench, type PreparedBench } from './bench-prepare.js';
import type { Progress } from './progress.js';
import { type Recorded, type Recording, recordSession } from '../record/record-session.js';
import type { BenchOptions } from './bench-option-values.js';
import { formatMs, plural } from '../vocabulary/format.js';

interface SavedBench {
  id: string;
  folder: string;
  interrupted: boolean;
}

const host = 'localhost';

/**
 * Prepare → run → import → session. Input errors are found before anything is measured; measurements are
 * saved whatever fails later.
 */
export async function runBenchSession(
  verb: BenchPart | 'suite',
  options: BenchOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<SavedBench> {
  const home = ensureWritable();
  const prepared = await prepareBench(verb, options, {
    cacheDir: home.cache,
    seed: options.seed,
    onProgress: (step, detail) => {
      if (signal.aborted) throw stoppedEarly();
      progress.update(step, detail);
    },
  });
  progress.done(titleOf(prepared, null), plannedWords(prepared, options));
  const plan = {
    label: labelOf(prepared),
    kind: 'bench',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the benchmark',
  };
  const saved = await recordSession(plan, async (recording) => {
    const roofline = await rooflineFor(prepared, options, home.cache, signal, progress);
    const capture = await runBench({
      variants: prepared.variants,
      launches: options.launches,
      repeats: options.runs,
      model: prepared.request.model,
      dtype: prepared.request.dtype,
      device: prepared.request.device,
      seed: options.seed,
      device_work: options.deviceWork,
      scratch: recording.scratch,
      host,
      signal,
      onProgress: (event) => showEvent(progress, event, prepared, options),
      onRows: recording.append,
    });
    progress.done('measured', measuredWords(capture));
    progress.update('saving the session');
    const recorded = await recordBench(recording, { prepared, options, capture, roofline });
    return { ...recorded, result: { interrupted: capture.stopped } };
  });
  progress.done('session saved', saved.id);
  return saved;
}

interface Measured {
  prepared: PreparedBench;
  options: BenchOptions;
  capture: BenchCapture;
  roofline: CachedRoofline | null;
}

async function recordBench(recording: Recording, measured: Measured): Promise<Recorded> {
  const { files, redact } = recording;
  const { prepared, options: typed, capture, roofline } = measured;
  const imported = await importBench(recording, capture);
  if (roofline) await saveRoofline(files, roofline, imported);
  await recording.saveJson('bench-plan', redactJson(planOf(prepared, typed), redact));
  const workload = workloadOf(prepared, imported.model);
  const { hardware, software } = capture.facts;
  const gpu = !onCpu(workload) && workload.device !== remoteDevice;
  const failed = capture.executions.some(({ launches }) =>
    launches.some(({ failure }) => failure !== null && !isInterruption(failure)),
  );
  return {
    title: titleOf(prepared, imported.model),
    status: capture.stopped ? 'interrupted' : failed ? 'failed' : 'complete',
    workload: { ...workload, engine: redactJson(workload.engine, redact) },
    hardware,
    software,
    executions: imported.executions,
    captures: imported.captures,
    issues: [
      ...imported.issues,
      ...engineIssues(prepared),
      ...(roofline ? rooflineIssues(roofline) : []),
      ...(gpu ? await attachGpuRoofline(files, hardware) : []),
    ],
  };
}

function engineIssues({ variants, points }: PreparedBench): Issue[] {
  return variants[0]!.prepared.issues?.(points) ?? [];
}

function plannedWords(prepared: PreparedBench, options: BenchOptions): string {
  const { variants } = prepared;
  const { launches, repeats } = planOf(prepared, options).protocol;
  const prefix = variants.length > 1 ? `${variants.length} variants × ` : '';
  return `${prefix}${plural(launches, 'launch', 'launches')} × ${plural(repeats, 'repeat')}`;
}

function measuredWords({ executions }: BenchCapture): string {
  const timed = executions.reduce((sum, { recorded }) => sum + recorded.timed, 0);
  const launches = executions.reduce((sum, execution) => sum + execution.launches.length, 0);
  return `${plural(timed, 'timed repeat')} in ${plural(launches, 'launch', 'launches')}`;
}

async function rooflineFor(
  { variants }: PreparedBench,
  { freshRoofline }: BenchOptions,
  cacheDir: string,
  signal: AbortSignal,
  progress: Progress,
): Promise<CachedRoofline | null> {
  const { prepared } = variants[0]!;
  const threads = threadsOf(variants, prepared.workload.threads);
  // Rooflines depend on the number of threads, so they fit only variants with the same number.
  if (prepared.name !== 'onnx' || threads === null) return null;
  return rooflineWithProgress(progress, {
    threads,
    cacheDir,
    fresh: freshRoofline === true,
    signal,
  });
}

function showEvent(
  progress: Progress,
  { variant, launch, progress: event, leftS }: BenchEvent,
  { variants, points }: PreparedBench,
  { launches }: BenchOptions,
): void {
  const prefix = variants.length > 1 ? `${variant.label} · ` : '';
  const timeLeft = leftWords(leftS);
  const step = `${prefix}launch ${launch + 1}/${launches}`;
  if (event.type === 'launch') progress.update(step, 'starting');
  else if (event.type === 'phase') {
    const words = { load: 'loading', warmup: 'warming up', timed: 'timing', device_work: 'GPU activity' };
    progress.update(step, `${timeLeft}${words[event.phase]}`);
  } else if (event.type === 'iteration') {
    const kind = event.warmup ? 'warm-up' : 'repeat';
    const pointPrefix = points.length > 1 ? `${pointLabel(event.point)} · ` : '';
    progress.update(step, `${timeLeft}${pointPrefix}${kind} ${formatMs(event.e2e_ms)}`);
  } else if (event.outcome === 'out_of_memory' || event.outcome === 'failed') {
    const words = event.outcome === 'out_of_memory' ? 'out of memory' : 'failed';
    progress.done(`${prefix}${pointLabel(event.point)}: ${words}`, event.text ?? '');
  }
}

function stoppedEarly(): InferscopeError {
  return new InferscopeError('E_INTERRUPTED', {
    what: 'stopped before the first timed repeat',
    why: 'Nothing was measured yet, so no session was saved.',
    fix: 'Run it again.',
  });
}
