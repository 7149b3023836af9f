import { relative } from 'node:path';
import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import { openSession } from '../session/open.js';
import { interruptible } from './interrupt.js';
import type { MemoryTyped } from './memory-options.js';
import { defaultProfilePath, ensureFile, freePath, writeProfile } from './memory-output.js';
import { browserLine, print, printJson, reportError, talk, terminalWidth, warn } from './output.js';
import { startProgress } from './progress.js';
import { reportPath } from './report-file.js';
import { explanationOf } from '../advice/explain/session-explanation.js';
import { writeAnalysed } from './session-summary.js';

/** Runs `inferscope memory`. Sets the exit code; a run that stopped early has the code of its cause and a partial profile. */
export async function memoryCommand(typed: MemoryTyped): Promise<void> {
  const { runMemorySession } = await import('./memory-run.js');
  const asked =
    typed.output ?? (typed.model === undefined ? null : defaultProfilePath(typed.model, new Date()));
  if (asked !== null) ensureFile(asked);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runMemorySession(typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeMemory } = await import('../facts/memory-profile/memory.js');
  const session = await openSession(kept.id);
  const document = await analyzeMemory(session);
  const output = typed.output ?? freePath(asked!);
  await writeProfile(output, document.data.profile);
  const report = reportPath(kept.folder);
  const explain = await explanationOf(session, { kind: 'memory' });
  await writeAnalysed({ kind: 'memory', document }, report, explain);
  if (typed.json) printJson(document.data.profile);
  else {
    const { terminalView } = await import('../render/terminal/view.js');
    const { viewOf } = await import('../views/registry.js');
    const view = await viewOf({ kind: 'memory', document });
    print(
      `${terminalView(view, { width: terminalWidth(), explain })}\n${browserLine(session.user.name ?? session.id)}`,
    );
  }
  if (!typed.quiet) {
    talk(`profile: ${relative(process.cwd(), output) || output}`);
    talk(`report: ${report}`);
  }
  if (kept.interrupted) {
    warn(`interrupted: session ${kept.id} and the profile hold what was measured until then`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  } else if (kept.failure) {
    process.exitCode = reportError(kept.failure, false);
  }
}
