import { join, relative } from 'node:path';
import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import type { KernelName } from '../model/kernels.js';
import { openSession } from '../session/open.js';
import { interruptible } from './interrupt.js';
import type { KernelsTyped } from './kernels.js';
import { print, printDocument, talk, terminalWidth, warn } from './output.js';
import { startProgress } from './progress.js';
import { reportPath, writePage } from './report-file.js';
import { resultsFolder, writeResult } from './results-folder.js';

/** Measures, keeps, analyses and shows. Sets the exit code. */
export async function kernelsCommand(names: readonly KernelName[], typed: KernelsTyped): Promise<void> {
  const { runKernels } = await import('./kernels-run.js');
  const folder = resultsFolder(typed.output);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runKernels(names, typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeKernels } = await import('../analyze/kernels/kernels.js');
  const { kernelFiles } = await import('../export/kernel-files.js');
  const { kernelsReport } = await import('../report/html/kernels/kernels.js');
  const document = await analyzeKernels(await openSession(kept.id));
  const report = reportPath(kept.folder);
  await writePage(report, (parts) => kernelsReport(document, parts));
  const files = kernelFiles(document);
  for (const { name, text } of files) await writeResult(join(folder, name), text);
  if (typed.json) printDocument(document);
  else {
    const { kernelsText } = await import('../report/terminal/kernels.js');
    print(kernelsText(document, terminalWidth()));
  }
  if (!typed.quiet) {
    talk(`${files.map(({ name }) => name).join(', ')} in ${relative(process.cwd(), folder) || '.'}`);
    talk(`report: ${report}`);
  }
  if (kept.interrupted) {
    warn(`interrupted: session ${kept.id} holds what was measured until then`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
    return;
  }
  const { cases } = document.data;
  if (cases.some(({ outcome }) => outcome === 'wrong')) process.exitCode = exitCodeOf.E_CHECK_FAILED;
  else if (cases.every(({ outcome }) => outcome !== 'measured'))
    process.exitCode = exitCodeOf.E_WORKLOAD_FAILED;
}
