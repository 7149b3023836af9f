import { type Command, Option } from 'commander';
import { fusions, launches } from '../model/documents/predict.js';
import { parseDType } from '../model/dtype.js';
import { sizesParser } from './bench-options.js';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { parseThreadCount, wholeNumberParser } from './numbers.js';
import type { PredictOptions } from './predict-device.js';
import { refuseUnused } from './unused-options.js';

export function define(command: Command): void {
  command
    .option('--model <name>', "preset, config.json, or a folder that has one (default: the session's model)")
    .option(
      '--gpu <name>',
      'GPU name as in nvidia-smi -L, or short: H200 (default: GPU of --roofline, --session or --kernels, else of this machine if inferscope roofline measured it, else the CPU)',
    )
    .option('--batch-size <n...>', 'batch size (default: 1)', sizesParser('--batch-size'))
    .option('--input-len <n...>', 'prompt tokens per sequence (default: 128)', sizesParser('--input-len'))
    .option(
      '--output-len <n>',
      'generated tokens per sequence; decode time is the mean over these steps (default: 32)',
      wholeNumberParser('--output-len', { min: 1, example: 32 }),
    )
    .option(
      '--dtype <dtype>',
      "dtype of weights and activations (default: the model's; float32 on a CPU)",
      parseDType,
    )
    .addOption(
      new Option(
        '--launch <how>',
        'how decode kernels are launched: one by one, or as CUDA graphs (default: graph)',
      ).choices(launches),
    )
    .addOption(
      new Option(
        '--fusion <level>',
        'none: as in Hugging Face transformers; standard: as in serving engines; full: norms and activations fused into GEMMs (default: standard)',
      ).choices(fusions),
    )
    .addOption(
      new Option('--kernels <session>', 'session of inferscope kernels with measured kernels; repeatable')
        .argParser(collect)
        .default([], 'none'),
    )
    .option('--session <session>', 'session of bench, profile, run or import to compare the prediction with')
    .option(
      '--roofline <source>',
      "measured roofs: file of roofline --json, or a session (default: this machine's cached roofline)",
    )
    .option('--threads <n>', 'CPU threads without a GPU (default: cores − 1)', parseThreadCount)
    .option('--csv <file>', 'also write a CSV file, one row per stage')
    .option('--json', 'print one inferscope/predict document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope predict --model llama-3.1-8b --gpu H200 --batch-size 1,8,32',
          'predict times on hardware that is not here',
        ],
        [
          'inferscope predict --kernels @last~1 --session @last',
          'compare a benchmark with a prediction from measured kernels',
        ],
      ),
    )
    .action(async (options: PredictOptions) => {
      if (options.gpu !== undefined)
        refuseUnused(command, ['threads'], {
          why: 'It applies to a CPU, and --gpu predicts a GPU.',
          fix: 'Remove --gpu to predict this CPU.',
        });
      const { runPredict } = await import('./predict-run.js');
      await runPredict(options);
    });
}
