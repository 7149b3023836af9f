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
import { rooflineWithProgress } from './machine-roofs.js';
import { countProgress, measureWithProgress, type Progress } from './progress.js';
import { recordRoofline, type RooflineCommandOptions } from './roofline-session.js';
import { writeToHome } from '../record/record-session.js';
import { formatQuantity } from '../vocabulary/format.js';

/** Measures the requested roofline or reads it from the cache, and prints it. */
export async function runRoofline(options: RooflineCommandOptions): Promise<void> {
  checkOptions(options);
  const home = ensureWritable();
  const { rooflineDocument, stopped } = await measureWithProgress(options, async (signal, progress) => ({
    rooflineDocument: await writeToHome('measure the roofline', home, () =>
      measure(options, home, progress, signal),
    ),
    stopped: signal.aborted,
  }));
  if (options.json) printDocument(rooflineDocument);
  else print(terminalView(rooflineView(rooflineDocument), { width: terminalWidth() }));
  if (stopped) process.exitCode = exitCodeOf.E_INTERRUPTED;
}

/** The CPU alone; without these options the GPUs come first. */
const isCpuRequested = ({ device, threads }: RooflineCommandOptions): boolean =>
  device === 'cpu' || (threads !== undefined && device === undefined);

function checkOptions(options: RooflineCommandOptions): void {
  const { device, threads, python, record, name, tag } = options;
  const hasGpuOptions = python !== undefined || record || name !== undefined || tag.length > 0;
  if (device === 'cuda' && threads !== undefined) {
    throw new InferscopeError('E_USAGE', {
      what: '--threads does not work with --device cuda',
      why: 'Threads apply to the CPU.',
      fix: 'Type: inferscope roofline --device cpu --threads 4',
    });
  }
  if (isCpuRequested(options) && hasGpuOptions) {
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
  const gpuResult = isCpuRequested(options)
    ? { gpu: null, issue: null }
    : await measureGpus(options, home, progress, signal);
  if (gpuResult.gpu) {
    const { roofline: gpu, cached, ageS } = gpuResult.gpu;
    return document(
      'roofline',
      rooflineVersion,
      { roofline: null, cached: false, age_s: null, gpu, gpu_cached: cached, gpu_age_s: ageS },
      cachedIssues(gpu, cached, ageS),
    );
  }
  const measured = await rooflineWithProgress(progress, {
    threads: options.threads ?? defaultThreads(detectCpu().usableCores),
    cacheDir: home.cache,
    fresh: options.fresh === true,
    signal,
  });
  const { roofline, cached, ageS } = measured;
  return document(
    'roofline',
    rooflineVersion,
    { roofline, cached, age_s: ageS, gpu: null, gpu_cached: false, gpu_age_s: null },
    [...(gpuResult.issue ? [gpuResult.issue] : []), ...rooflineIssues(measured)],
  );
}

/** @returns no GPU if none was requested and none can be measured; `issue` then states the reason, unless the machine has no GPU */
async function measureGpus(
  options: RooflineCommandOptions,
  home: Home,
  progress: Progress,
  signal: AbortSignal,
): Promise<{ gpu: MeasuredGpuRoofline | null; issue: Issue | null }> {
  const isRecorded = options.record === true || options.name !== undefined || options.tag.length > 0;
  const measuresGpus = options.device === 'cuda' || options.python !== undefined || isRecorded;
  if (!measuresGpus) {
    const { gpus, reason } = await openGpus();
    gpus?.close();
    if (!gpus) {
      const withoutGpu = reason.code === 'no_driver' || reason.code === 'no_gpu';
      return { gpu: null, issue: withoutGpu ? null : gpuNotMeasured(reason.text) };
    }
  }
  const measureIn = async (scratch: string | null) => {
    const gpu = await gpuRoofline({
      python: options.python ?? null,
      cacheDir: home.cache,
      fresh: options.fresh === true || isRecorded,
      scratch,
      signal,
      onProgress: countProgress(progress, 'measuring the GPUs'),
    });
    if (!gpu.cached) progress.done('measured the GPUs', formatQuantity(gpu.roofline.seconds, 's'));
    return { gpu, stopped: signal.aborted };
  };
  try {
    if (!isRecorded) return { ...(await measureIn(null)), issue: null };
    const { id, gpu } = await recordRoofline(options, ({ scratch }) => measureIn(scratch));
    await writeSessionReport(id);
    return { gpu, issue: null };
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code !== 'E_ENGINE_MISSING') throw error;
    if (measuresGpus) throw await whyNoGpu(error);
    return { gpu: null, issue: gpuNotMeasured(`${error.parts.what}. ${error.parts.fix}`) };
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

async function writeSessionReport(id: string): Promise<void> {
  const saved = await openSession(id);
  const { analyzeSession } = await import('../facts/session-document.js');
  const { writeAnalyzedReport: writeAnalyzed } = await import('./session-summary.js');
  const path = reportPath(saved.folder);
  await writeAnalyzed(await analyzeSession(saved), path);
  notify(`session ${saved.id} saved · report: ${path}`);
}

function gpuNotMeasured(why: string): Issue {
  return {
    code: 'gpu_not_measured',
    severity: 'warning',
    text: `The GPU was not measured; showing the CPU's roofs: ${why}`,
  };
}
