import type { BenchPart } from '../model/bench.js';
import { openSession } from '../session/open.js';
import { interruptible } from './interrupt.js';
import { browserLine, terminalWidth } from './output.js';
import { startProgress } from './progress.js';
import type { PageParts } from './report-file.js';
import { resultsFolder } from './results-folder.js';
import { explanationOf } from '../advice/explain/session-explanation.js';
import { showMeasured } from './show-measured.js';
import type { BenchTyped } from './bench-typed.js';

/** Runs a bench subcommand that uses an engine. Sets the exit code. */
export async function benchCommand(verb: BenchPart | 'suite', typed: BenchTyped): Promise<void> {
  const { runBenchSession } = await import('./bench-run.js');
  const folder = resultsFolder(typed.output);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runBenchSession(verb, typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeBench } = await import('../facts/bench/bench.js');
  const { benchFiles } = await import('../export/bench-files.js');
  const { pageOfView } = await import('../render/html/view.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const { viewOf } = await import('../views/registry.js');
  const session = await openSession(kept.id);
  const document = await analyzeBench(session);
  const explain = await explanationOf(session, { kind: 'bench' });
  const view = await viewOf({ kind: 'bench', document });
  const measured = {
    document,
    files: benchFiles(document),
    page: (parts: PageParts) => pageOfView(view, { ...parts, explain }),
    text: () =>
      Promise.resolve(
        `${terminalView(view, { width: terminalWidth(), explain })}\n${browserLine(session.user.name ?? session.id)}`,
      ),
  };
  await showMeasured(kept, measured, { folder, json: typed.json, quiet: typed.quiet });
}
