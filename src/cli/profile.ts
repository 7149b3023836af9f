import process from 'node:process';
import { Option, type Command } from 'commander';
import { exitCodeOf } from '../model/errors.js';
import { examples } from './examples.js';
import { interruptible } from './interrupt.js';
import { parseThreadCount, wholeNumberParser } from './numbers.js';
import { openInBrowser } from './open-in-browser.js';
import { print, printDocument, warn } from './output.js';
import { runProfile, type ProfileCommandOptions } from './profile-run.js';

interface ProfileOptions extends ProfileCommandOptions {
  json?: boolean;
  open?: boolean;
}

export function define(command: Command): void {
  command
    .option(
      '--model <spec>',
      'preset (llama-24m, llama-110m, …), config.json, or a folder with an ONNX export',
      'llama-24m',
    )
    .option('--dtype <dtype>', "float32 or int4 (default: the export's dtype, else float32)")
    .option(
      '--batch-size <n>',
      'sequences per batch',
      wholeNumberParser('--batch-size', { min: 1, example: 1 }),
      1,
    )
    .option(
      '--input-len <n>',
      'prompt tokens per sequence',
      wholeNumberParser('--input-len', { min: 1, example: 128 }),
      128,
    )
    .option(
      '--output-len <n>',
      'generated tokens per sequence',
      wholeNumberParser('--output-len', { min: 1, example: 32 }),
      32,
    )
    .option('--threads <n>', 'CPU threads for compute (default: cores − 1)', parseThreadCount)
    .option(
      '--launches <n>',
      'process launches; intervals are computed over them',
      wholeNumberParser('--launches', { min: 1, example: 5 }),
      5,
    )
    .option('--runs <n>', 'timed repeats per launch', wholeNumberParser('--runs', { min: 1, example: 3 }), 3)
    .option(
      '--seed <n>',
      'seed for weights and prompts',
      wholeNumberParser('--seed', { min: 0, example: 1 }),
      0,
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--output <file>', 'also write the HTML report to this file')
    .option('--fresh-roofline', "measure this machine's roofline again")
    .option('--open', 'open the report in the browser')
    .option('--json', 'print one inferscope/profile document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        ['inferscope profile', 'profile a 24 M parameter Llama on this CPU and write a report'],
        [
          'inferscope profile --model llama-110m --dtype int4 --batch-size 8',
          'profile a larger model, quantized and batched',
        ],
      ),
    )
    .action(async (options: ProfileOptions) => {
      const { document, explain, reportPath, interrupted } = await interruptible((signal) =>
        runProfile(options, signal),
      );
      if (options.json) printDocument(document);
      else {
        const { summaryText: analyzedText, withReportPath: reported } = await import('./session-summary.js');
        const analyzed = { kind: 'profile', document } as const;
        const text = await analyzedText(analyzed, options.name ?? document.data.session.id, explain);
        print(reported(text, reportPath));
      }
      if (options.open && !interrupted) await openInBrowser(reportPath);
      if (interrupted) {
        warn(`interrupted: session ${document.data.session.id} has what was measured so far`);
        process.exitCode = exitCodeOf.E_INTERRUPTED;
      }
    });
}
