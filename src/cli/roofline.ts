import type { Command } from 'commander';
import { machineRoofline, rooflineIssues } from '../capture/onnx/machine-roofline.js';
import { defaultThreads } from '../engines/onnx/decoder.js';
import { detectCpu } from '../hardware/cpu.js';
import { document } from '../model/document.js';
import { rooflineSummary } from '../report/terminal/roofline.js';
import { ensureWritable } from '../session/home.js';
import { asStorageFailure } from '../session/storage-failure.js';
import { examples } from './examples.js';
import { interruptible } from './interrupt.js';
import { wholeNumber } from './numbers.js';
import { print, printDocument, terminalWidth } from './output.js';
import { startProgress } from './progress.js';

export function define(command: Command): void {
  command
    .option('--threads <n>', 'CPU threads that compute (default: cores − 1)', wholeNumber('--threads', 1, 2))
    .option('--fresh', 'measure again even when a cached one exists')
    .option('--json', 'print one inferscope/roofline document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        ['inferscope roofline', "this machine's roofs, measured once and cached"],
        ['inferscope roofline --fresh --threads 4 --json', 'measured anew with four threads, for a program'],
      ),
    )
    .action(async (options: { threads?: number; fresh?: boolean; json?: boolean; quiet?: boolean }) => {
      const home = ensureWritable();
      const progress = startProgress(options.quiet === true);
      const found = await interruptible((signal) =>
        machineRoofline({
          threads: options.threads ?? defaultThreads(detectCpu().usableCores),
          cacheDir: home.cache,
          fresh: options.fresh === true,
          signal,
          onProgress: ({ done, total, label }) =>
            progress.update('measuring the roofline', `${done}/${total} ${label}`),
        }),
      )
        .catch((error: unknown) => {
          throw asStorageFailure(error, { path: home.root, doing: 'measure the roofline', home: true });
        })
        .finally(progress.end);
      const { roofline, cached, ageS } = found;
      const made = document('roofline', '1.0', { roofline, cached, age_s: ageS }, rooflineIssues(found));
      if (options.json) printDocument(made);
      else print(rooflineSummary(made, { width: Math.min(100, terminalWidth()) }));
    });
}
