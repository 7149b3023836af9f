import { Option, type Command } from 'commander';
import { engineName } from './bench-engines.js';
import { sizeList } from './bench-options.js';
import { examples } from './examples.js';
import { modelOptions } from './memory-options.js';
import { wholeNumber } from './numbers.js';
import { duration } from './durations.js';
import { byteSize, wordList } from './sweep-options.js';
import type { SweepTyped } from './sweep-plan.js';

const collect = (text: string, before: string[] = []): string[] => [...before, text];
const sizes = (flag: string, what: string) =>
  new Option(`${flag} <n...>`, what).argParser(sizeList(flag, true));
const words = (flag: string, what: string) => new Option(`${flag} <name...>`, what).argParser(wordList);

export function define(command: Command): void {
  command
    .description(
      'memory and latency of many configurations, each in a process of its own; or any inferscope command over a grid',
    )
    .argument('[command...]', 'with --grid: the inferscope command, behind --')
    .option('--config <file>', 'YAML with models: (or command: and grid:)')
    .option('--init [file]', 'write a commented template (default: models.yaml)')
    .addOption(
      new Option('--grid <name=values>', 'an axis, e.g. batch-size=1,8,32; repeat for more')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(words('--model', 'models, as the engine takes them'))
    .addOption(sizes('--input-len', 'prompt tokens'))
    .addOption(sizes('--output-len', 'tokens generated'))
    .addOption(sizes('--batch-size', 'sequences at once'))
    .addOption(words('--dtype', 'of weights and activations (default: float16)'))
    .addOption(sizes('--tensor-parallel-size', 'GPUs that share the model (default: 1)'));
  modelOptions(command)
    .addOption(
      new Option(
        '--engine <name>',
        'transformers, vllm or onnx (default: what inferscope memory takes)',
      ).argParser(engineName),
    )
    .option('--engine-arg <key=value>', 'reaches the engine', collect)
    .option('--device <device>', 'cpu, cuda, cuda:1, …')
    .option('--weights <kind>', 'random, trained or load')
    .option('--python <path>', 'interpreter of engines in Python')
    .option('--container [name]', 'run in containers that are up; entries without container_name in this one')
    .option('--url <url>', 'the engine is a server there')
    .option('--dry-run', 'commands, number of runs, time, and what will not fit; runs nothing')
    .option('--resume [journal]', 'go on with a sweep that was stopped (default: the newest in --output)')
    .option('--retry-failed', 'with --resume: also what failed')
    .option('--timeout <duration>', 'of each run, e.g. 30m (default: 1h)', duration('--timeout', '30m'))
    .option(
      '--retries <n>',
      'after faults of the machine, not of the model (default: 1)',
      wholeNumber('--retries', 0, 2),
    )
    .option(
      '--min-free-disk <size>',
      'do not begin a run below this (default: 1GiB)',
      byteSize('--min-free-disk'),
    )
    .option('--output <folder>', 'where profiles, CSV and reports go', './results')
    .option('--name <name>', 'name the sweep')
    .option('--json', 'print one inferscope/sweep document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope sweep --config models.yaml --dry-run',
          'what would run, how long it takes and what will not fit',
        ],
        ['inferscope sweep --grid dtype=float32,int4 -- bench latency', 'two benchmarks, one table'],
      ),
    )
    .action(async (command: string[], typed: SweepTyped) => {
      const { sweepCommand } = await import('./sweep-command.js');
      await sweepCommand(command, typed);
    });
}
