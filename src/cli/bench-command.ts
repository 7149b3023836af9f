import type { BenchPart } from '../model/bench.js';
import { openSession } from '../session/open.js';
import { interruptible } from './interrupt.js';
import { terminalWidth } from './output.js';
import { startProgress } from './progress.js';
import type { PageParts } from './report-file.js';
import { resultsFolder } from './results-folder.js';
import { explanationOf } from './session-summary.js';
import { showMeasured } from './show-measured.js';
import type { BenchTyped } from './bench-typed.js';

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
  const { explanationParts } = await import('../render/html/view.js');
  const { benchReport } = await import('../report/html/bench/bench.js');
  const session = await openSession(kept.id);
  const document = await analyzeBench(session);
  const explain = await explanationOf(session, { kind: 'bench' });
  const measured = {
    document,
    files: benchFiles(document),
    page: (parts: PageParts) => benchReport(document, { ...parts, explanation: explanationParts(explain) }),
    text: async () => {
      const { benchText } = await import('../report/terminal/bench.js');
      const { explanationTexts } = await import('../render/terminal/view.js');
      return benchText(document, terminalWidth(), explanationTexts(explain, terminalWidth()));
    },
  };
  await showMeasured(kept, measured, { folder, json: typed.json, quiet: typed.quiet });
}
