import { type Command, Option } from 'commander';
import { fusions, launches } from '../model/documents/predict.js';
import { parseDType } from '../model/dtype.js';
import { sizeList } from './bench-options.js';
import { examples } from './examples.js';
import { threadCount, wholeNumber } from './numbers.js';
import type { PredictTyped } from './predict-device.js';
import { refuseUnused } from './unused-options.js';

export function define(command: Command): void {
  const several = (word: string, before: string[]) => [...before, word];
  command
    .option('--model <name>', "preset, config.json, or a folder that holds one (default: the session's)")
    .option(
      '--gpu <name>',
      'GPU as nvidia-smi -L names it, or without its maker: H200 (default: what is here, else the CPU)',
    )
    .option('--batch-size <n,…>', 'sequences (default: 1)', sizeList('--batch-size', true))
    .option(
      '--context-len <n,…>',
      'prompt tokens of a sequence (default: 128)',
      sizeList('--context-len', true),
    )
    .option(
      '--output-len <n>',
      'new tokens of a sequence: decode is the mean step of them (default: 32)',
      wholeNumber('--output-len', 1, 32),
    )
    .option(
      '--dtype <dtype>',
      "of weights and activations (default: the model's; float32 on a CPU)",
      parseDType,
    )
    .addOption(
      new Option(
        '--launch <how>',
        'kernel by kernel, or decode steps as CUDA graphs (default: graph)',
      ).choices(launches),
    )
    .addOption(
      new Option(
        '--fusion <level>',
        'none: as Hugging Face transformers; standard: as serving engines; full: norms and activations inside products (default: standard)',
      ).choices(fusions),
    )
    .addOption(
      new Option('--kernels <session>', 'measured kernels: a session of inferscope kernels; may be repeated')
        .argParser(several)
        .default([], 'none'),
    )
    .option(
      '--session <session>',
      'what was measured, beside the prediction: a bench, profile, run or import',
    )
    .option(
      '--roofline <source>',
      "measured roofs: a file of roofline --json, or a session (default: this machine's, cached)",
    )
    .option('--threads <n>', 'CPU threads, without a GPU (default: cores − 1)', threadCount)
    .option('--csv <file>', 'also write one row a stage')
    .option('--json', 'print one inferscope/predict document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope predict --model llama-3.1-8b --gpu H200 --batch-size 1,8,32',
          'what the hardware allows, without having it',
        ],
        [
          'inferscope predict --kernels @last~1 --session @last',
          'a benchmark against the measured kernels of its model',
        ],
      ),
    )
    .action(async (typed: PredictTyped) => {
      if (typed.gpu !== undefined)
        refuseUnused(command, ['threads'], {
          why: 'It is of a CPU, and --gpu predicts a GPU.',
          fix: 'Leave --gpu out to predict this CPU.',
        });
      const { runPredict } = await import('./predict-run.js');
      await runPredict(typed);
    });
}
