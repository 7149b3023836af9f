import { Option, type Command } from 'commander';
import { parseEngineName } from './bench-engines.js';
import { sizesParser } from './bench-options.js';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { defineModelOptions } from './memory-options.js';
import { byteSizeParser, wholeNumberParser } from './numbers.js';
import { durationParser } from './durations.js';
import { onOption, sbatchOption } from './slurm-options.js';
import type { LoadableCommand } from './completion.js';
import type { SweepOptions } from './sweep-plan.js';

const sizeOption = (flag: string, what: string) =>
  new Option(`${flag} <n...>`, what).argParser(sizesParser(flag));
const wordOption = (flag: string, what: string) =>
  new Option(`${flag} <name...>`, what).argParser(parseWords);

/** @param commands all commands, which a grid can run */
export const defineSweep =
  (commands: readonly LoadableCommand[]) =>
  (command: Command): void => {
    command
      .description(
        'measure memory and latency of many configurations, each in its own process; or run any inferscope command over a grid; resumable',
      )
      .argument('[command...]', 'with --grid: the inferscope command after --')
      .option('--config <file>', 'YAML with models: (or command: and grid:)')
      .option('--init [file]', 'write a commented template (default: models.yaml)')
      .addOption(
        new Option('--grid <name=values>', 'grid axis, e.g. batch-size=1,8,32; repeatable')
          .argParser(collect)
          .default([], 'none'),
      )
      .addOption(wordOption('--model', 'models: preset, config.json, folder or hub id'))
      .addOption(sizeOption('--input-len', 'prompt tokens per sequence'))
      .addOption(sizeOption('--output-len', 'generated tokens per sequence'))
      .addOption(sizeOption('--batch-size', 'sequences per batch'))
      .addOption(
        wordOption(
          '--dtype',
          'dtype of weights and activations (default: float16, float32 on the embedded engine)',
        ),
      )
      .addOption(sizeOption('--tensor-parallel-size', 'GPUs that each layer is split over (default: 1)'));
    defineModelOptions(command)
      .addOption(
        new Option(
          '--engine <name>',
          'vllm, transformers or onnx (default: as in inferscope memory)',
        ).argParser(parseEngineName),
      )
      .option('--engine-arg <key=value>', 'argument for the engine', collect)
      .option('--device <device>', 'cpu, cuda, cuda:1, …')
      .option('--weights <kind>', 'random, trained or load')
      .option('--python <path>', 'Python for engines in Python')
      .option(
        '--container [name]',
        'use running Docker containers (name: for entries without container_name)',
      )
      .option('--url <url>', 'URL of the server to measure')
      .option('--dry-run', 'show commands, number of runs, estimated time and what does not fit; run nothing')
      .option('--resume [journal]', 'resume a stopped sweep (default: the newest in --output)')
      .option('--retry-failed', 'with --resume: also retry failed runs')
      .option(
        '--timeout <duration>',
        'timeout per run, e.g. 30m (default: 1h)',
        durationParser('--timeout', { example: '30m' }),
      )
      .option(
        '--retries <n>',
        'retries after machine faults, not model errors (default: 1)',
        wholeNumberParser('--retries', { min: 0, example: 2 }),
      )
      .option(
        '--min-free-disk <size>',
        'minimum free disk space to start a run (default: 1GiB)',
        byteSizeParser('--min-free-disk'),
      )
      .addOption(onOption('where runs execute, one at a time on this machine; on Slurm one per task'))
      .addOption(sbatchOption())
      .option(
        '--jobs <n>',
        'with --on slurm: runs at the same time',
        wholeNumberParser('--jobs', { min: 1, example: 4 }),
      )
      .option('--output <folder>', 'folder for profiles, CSV and reports', './results')
      .option('--name <name>', 'name the sweep')
      .option('--json', 'print one inferscope/sweep document')
      .option('--quiet', 'no progress on stderr')
      .addHelpText(
        'after',
        examples(
          [
            'inferscope sweep --config models.yaml --dry-run',
            'show what would run, how long it takes and what does not fit',
          ],
          [
            'inferscope sweep --grid dtype=float32,int4 -- bench latency',
            'run two benchmarks into one table',
          ],
        ),
      )
      .action(async (command: string[], options: SweepOptions, sweep: Command) => {
        const { sweepCommand } = await import('./sweep-command.js');
        await sweepCommand(command, options, { sweep, commands });
      });
  };

/** `a,b`, `a b` or repeated; each once. */
function parseWords(text: string, before: string[] = []): string[] {
  return [...new Set([...before, ...text.split(/\s*,\s*|\s+/).filter((word) => word !== '')])];
}
