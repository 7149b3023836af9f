import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import type { KernelName } from '../model/kernels.js';
import { openSession } from '../session/open.js';
import type { KernelsOptions } from './kernels-option-values.js';
import { measureWithProgress } from './progress.js';
import { resultsFolder, writeResults } from './results-folder.js';
import { showMeasured } from './show-measured.js';

/** Measures, saves, analyzes and prints. Sets the exit code. */
export async function kernelsCommand(names: readonly KernelName[], options: KernelsOptions): Promise<void> {
  const { runKernels } = await import('./kernels-run.js');
  const folder = resultsFolder(options.output);
  const saved = await measureWithProgress(options, (signal, progress) =>
    runKernels(names, options, signal, progress),
  );
  const { analyzeKernels } = await import('../facts/kernels/kernels.js');
  const { kernelFiles } = await import('../export/kernel-files.js');
  const document = await analyzeKernels(await openSession(saved.id));
  const results = () => writeResults(folder, kernelFiles(document));
  await showMeasured(saved, { kind: 'kernels', document }, options, { results });
  if (saved.interrupted) return;
  const { cases } = document.data;
  if (cases.some(({ outcome }) => outcome === 'wrong')) process.exitCode = exitCodeOf.E_CHECK_FAILED;
  else if (cases.every(({ outcome }) => outcome !== 'measured'))
    process.exitCode = exitCodeOf.E_WORKLOAD_FAILED;
}
