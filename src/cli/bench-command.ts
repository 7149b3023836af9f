import type { BenchPart } from '../model/bench.js';
import { openSession } from '../session/open.js';
import type { BenchOptions } from './bench-option-values.js';
import { measureWithProgress } from './progress.js';
import { resultsFolder, writeResults } from './results-folder.js';
import { showMeasured } from './show-measured.js';

/** Runs a bench subcommand that uses an engine. Sets the exit code. */
export async function benchCommand(verb: BenchPart | 'suite', options: BenchOptions): Promise<void> {
  const { runBenchSession } = await import('./bench-run.js');
  const folder = resultsFolder(options.output);
  const saved = await measureWithProgress(options, (signal, progress) =>
    runBenchSession(verb, options, signal, progress),
  );
  const { analyzeBench } = await import('../facts/bench/bench.js');
  const { benchFiles } = await import('../export/bench-files.js');
  const document = await analyzeBench(await openSession(saved.id));
  const results = () => writeResults(folder, benchFiles(document));
  await showMeasured(saved, { kind: 'bench', document }, options, { results });
}
