import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import type { KernelName } from '../model/kernels.js';
import { openSession } from '../session/open.js';
import { interruptible } from './interrupt.js';
import { browserLine, terminalWidth } from './output.js';
import { startProgress } from './progress.js';
import type { PageParts } from './report-file.js';
import { resultsFolder } from './results-folder.js';
import { showMeasured } from './show-measured.js';
import type { KernelsTyped } from './kernels-typed.js';

/** Measures, saves, analyses and prints. Sets the exit code. */
export async function kernelsCommand(names: readonly KernelName[], typed: KernelsTyped): Promise<void> {
  const { runKernels } = await import('./kernels-run.js');
  const folder = resultsFolder(typed.output);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runKernels(names, typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeKernels } = await import('../facts/kernels/kernels.js');
  const { kernelFiles } = await import('../export/kernel-files.js');
  const { pageOfView } = await import('../render/html/view.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const { viewOf } = await import('../views/registry.js');
  const session = await openSession(kept.id);
  const document = await analyzeKernels(session);
  const view = await viewOf({ kind: 'kernels', document });
  const measured = {
    document,
    files: kernelFiles(document),
    page: (parts: PageParts) => pageOfView(view, parts),
    text: () =>
      Promise.resolve(
        `${terminalView(view, { width: terminalWidth() })}\n${browserLine(session.user.name ?? session.id)}`,
      ),
  };
  await showMeasured(kept, measured, { folder, json: typed.json, quiet: typed.quiet });
  if (kept.interrupted) return;
  const { cases } = document.data;
  if (cases.some(({ outcome }) => outcome === 'wrong')) process.exitCode = exitCodeOf.E_CHECK_FAILED;
  else if (cases.every(({ outcome }) => outcome !== 'measured'))
    process.exitCode = exitCodeOf.E_WORKLOAD_FAILED;
}
