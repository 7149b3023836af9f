import process from 'node:process';
import { rooflineIssues } from '../capture/onnx/machine-roofline.js';
import { cachedIssues } from '../capture/roofline/issues.js';
import { gpuRoofline, type MeasuredGpuRoofline } from '../capture/roofline/measure-gpus.js';
import { openGpus } from '../capture/telemetry-gpus.js';
import { defaultThreads } from '../engines/onnx/decoder.js';
import { detectCpu } from '../hardware/cpu.js';
import { document, type Document, type Issue } from '../model/document.js';
import { type RooflineData, rooflineVersion } from '../model/documents/roofline.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { terminalView } from '../render/terminal/view.js';
import { ensureWritable, type Home } from '../session/home.js';
import { openSession } from '../session/open.js';
import { rooflineView } from '../views/roofline.js';
import { print, printDocument, notify, terminalWidth } from './output.js';
import { reportPath } from './report-file.js';
import { machineRoofs } from './machine-roofs.js';
import { countProgress, measuring, type Progress } from './progress.js';
import { recordRoofline, type RooflineCommandOptions } from './roofline-session.js';
import { writeToHome } from '../record/record-session.js';
import { formatQuantity } from '../vocabulary/format.js';

/** Measures the requested roofline or reads it from the cache, and prints it. */
export async function runRoofline(options: RooflineCommandOptions): Promise<void> {
  checkOptions(options);
  const home = ensureWritable();
  const { made: rooflineDocument, stopped } = await measuring(options, async (signal, progress) => {
    const done = await writeToHome('measure the roofline', home, () =>
      measure(options, home, progress, signal),
    );
    return { made: done, stopped: signal.aborted };
  });
  if (options.json) printDocument(rooflineDocument);
  else print(terminalView(rooflineView(rooflineDocument), { width: terminalWidth() }));
  if (stopped) process.exitCode = exitCodeOf.E_INTERRUPTED;
}

function checkOptions({ device, threads, python, record, name, tag }: RooflineCommandOptions): void {
  const cpu = device === 'cpu' || (threads !== undefined && device === undefined);
  const forGpus = python !== undefined || record || name !== undefined || tag.length > 0;
  if (device === 'cuda' && threads !== undefined) {
    throw new InferscopeError('E_USAGE', {
      what: '--threads does not work with --device cuda',
      why: 'Threads apply to the CPU.',
      fix: 'Type: inferscope roofline --device cpu --threads 4',
    });
  }
  if (cpu && forGpus) {
    throw new InferscopeError('E_USAGE', {
      what: '--python, --record, --name and --tag do not work for the CPU',
      why: 'The CPU is measured with the embedded engine, without Python, and its roofs are saved in every profile session.',
      fix: 'Type: inferscope roofline --device cuda   or remove these options.',
    });
  }
}

async function measure(
  options: RooflineCommandOptions,
  home: Home,
  progress: Progress,
  signal: AbortSignal,
): Promise<Document<RooflineData>> {
  const cpu = options.device === 'cpu' || (options.threads !== undefined && options.device === undefined);
  const gpuResult = cpu ? { gpu: null, issue: null } : await measureGpus(options, home, progress, signal);
  if (gpuResult.gpu) {
    const { roofline: gpu, cached, ageS } = gpuResult.gpu;
    return document(
      'roofline',
      rooflineVersion,
      { roofline: null, cached: false, age_s: 0, gpu, gpu_cached: cached, gpu_age_s: ageS },
      cachedIssues(gpu, cached, ageS),
    );
  }
  const measured = await machineRoofs(progress, {
    threads: options.threads ?? defaultThreads(detectCpu().usableCores),
    cacheDir: home.cache,
    fresh: options.fresh === true,
    signal,
  });
  const { roofline, cached, ageS } = measured;
  return document(
    'roofline',
    rooflineVersion,
    { roofline, cached, age_s: ageS, gpu: null, gpu_cached: false, gpu_age_s: 0 },
    [...(gpuResult.issue ? [gpuResult.issue] : []), ...rooflineIssues(measured)],
  );
}

/** @returns no GPU if none was requested and there is no GPU or no PyTorch; `issue` then states the reason */
async function measureGpus(
  options: RooflineCommandOptions,
  home: Home,
  progress: Progress,
  signal: AbortSignal,
): Promise<{ gpu: MeasuredGpuRoofline | null; issue: Issue | null }> {
  const recorded = options.record === true || options.name !== undefined || options.tag.length > 0;
  const measuresGpus = options.device === 'cuda' || options.python !== undefined || recorded;
  if (!measuresGpus) {
    const { gpus, reason } = await openGpus();
    gpus?.close();
    if (!gpus) {
      const plain = reason.code === 'no_driver' || reason.code === 'no_gpu';
      return { gpu: null, issue: plain ? null : notMeasured(reason.text) };
    }
  }
  const measureIn = async (scratch: string | null) => {
    const gpu = await gpuRoofline({
      python: options.python ?? null,
      cacheDir: home.cache,
      fresh: options.fresh === true || recorded,
      scratch,
      signal,
      onProgress: countProgress(progress, 'measuring the GPUs'),
    });
    if (!gpu.cached) progress.done('measured the GPUs', formatQuantity(gpu.roofline.seconds, 's'));
    return { gpu, stopped: signal.aborted };
  };
  try {
    if (!recorded) return { ...(await measureIn(null)), issue: null };
    const { id, gpu } = await recordRoofline(options, ({ scratch }) => measureIn(scratch));
    await report(id);
    return { gpu, issue: null };
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code !== 'E_ENGINE_MISSING') throw error;
    if (measuresGpus) throw await whyNoGpu(error);
    return { gpu: null, issue: notMeasured(`${error.parts.what}. ${error.parts.fix}`) };
  }
}

/** The reason why there is no GPU, which says more than what a Python installation lacks. */
async function whyNoGpu(error: InferscopeError): Promise<InferscopeError> {
  const { gpus, reason } = await openGpus();
  gpus?.close();
  if (gpus || (reason.code !== 'no_driver' && reason.code !== 'no_gpu')) return error;
  return new InferscopeError('E_ENGINE_MISSING', {
    what: 'this machine has no GPU to measure',
    why: reason.text,
    fix: 'inferscope roofline measures the CPU; inferscope doctor shows what this machine has.',
  });
}

async function report(id: string): Promise<void> {
  const saved = await openSession(id);
  const { analyzeSession } = await import('../facts/session-document.js');
  const { writeAnalyzed } = await import('./session-summary.js');
  const path = reportPath(saved.folder);
  await writeAnalyzed(await analyzeSession(saved), path);
  notify(`session ${saved.id} saved · report: ${path}`);
}

function notMeasured(why: string): Issue {
  return {
    code: 'gpu_not_measured',
    severity: 'warning',
    text: `The GPU was not measured; showing the CPU's roofs: ${why}`,
  };
}
