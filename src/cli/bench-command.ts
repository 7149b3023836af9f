import { join, relative } from 'node:path';
import process from 'node:process';
import type { BenchPart } from '../model/bench.js';
import { exitCodeOf } from '../model/errors.js';
import { openSession } from '../session/open.js';
import type { BenchTyped } from './bench-options.js';
import { interruptible } from './interrupt.js';
import { print, printDocument, talk, terminalWidth, warn } from './output.js';
import { startProgress } from './progress.js';
import { reportPath, writePage } from './report-file.js';
import { resultsFolder, writeResult } from './results-folder.js';
import { explanationOf } from './session-summary.js';

/** What every bench verb with an engine does. Sets the exit code. */
export async function benchCommand(verb: BenchPart | 'suite', typed: BenchTyped): Promise<void> {
  const { runBenchSession } = await import('./bench-run.js');
  const folder = resultsFolder(typed.output);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runBenchSession(verb, typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeBench } = await import('../analyze/bench/bench.js');
  const { benchFiles } = await import('../export/bench-files.js');
  const session = await openSession(kept.id);
  const document = await analyzeBench(session);
  const explain = await explanationOf(session, { kind: 'bench' });
  const report = reportPath(kept.folder);
  const { benchReport } = await import('../report/html/bench/bench.js');
  await writePage(report, (parts) => benchReport(document, { ...parts, explain }));
  const files = benchFiles(document);
  for (const { name, text } of files) await writeResult(join(folder, name), text);
  if (typed.json) printDocument(document);
  else {
    const { benchText } = await import('../report/terminal/bench.js');
    print(benchText(document, Math.min(110, terminalWidth()), explain));
  }
  if (!typed.quiet) {
    talk(`${files.map(({ name }) => name).join(', ')} in ${relative(process.cwd(), folder) || '.'}`);
    talk(`report: ${report}`);
  }
  if (kept.interrupted) {
    warn(`interrupted: session ${kept.id} holds what was measured until then`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
}
