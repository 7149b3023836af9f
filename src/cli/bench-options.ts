import { Option, type Command } from 'commander';
import type { BenchPart } from '../model/bench.js';
import { InferscopeError } from '../model/errors.js';
import { parseEngineName } from './bench-engines.js';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { parseThreadCount, wholeNumberParser } from './numbers.js';
import type { BenchOptions } from './bench-option-values.js';

/** A size of the workload that a command takes. */
interface SizeHelp {
  /** Whether the command accepts several values. */
  isSwept: boolean;
  default: string;
  /** Which of the command's benchmarks use which values. */
  use?: string;
}

interface VerbHelp {
  batchSize: SizeHelp;
  inputLen: SizeHelp;
  outputLen: SizeHelp;
  examples: [command: string, meaning: string][];
}

/** Returns a parser of sizes: `1,8,32`, `1 8 32` or a repeated flag; whole numbers from 1, each once, and a single one unless `isSwept`. */
export function sizesParser(
  flag: string,
  { isSwept } = { isSwept: true },
): (text: string, before?: number[]) => number[] {
  return (text, before = []) => {
    const values = text
      .trim()
      .split(/\s*,\s*|\s+/)
      .map(wholeNumberParser(flag, { min: 1, example: 8 }));
    const all = [...new Set([...before, ...values])];
    if (!isSwept && all.length > 1) {
      throw new InferscopeError('E_USAGE', {
        what: `${flag} takes one number here, not ${all.join(', ')}`,
        why: 'This command measures a single value; other bench commands sweep it.',
        fix:
          flag === '--batch-size'
            ? `Type for example: inferscope bench throughput ${flag} ${all.join(',')}`
            : `Type for example: inferscope bench sequence ${flag} ${all.join(',')}`,
      });
    }
    return all;
  };
}

/** Options shared by all bench commands that use an engine. */
export function defineBenchOptions(command: Command, verb: BenchPart | 'suite', help: VerbHelp): Command {
  const sizeOption = (flag: string, sizes: SizeHelp, what: string) =>
    new Option(
      `${flag} <${sizes.isSwept ? 'n...' : 'n'}>`,
      `${what}${sizes.use ? `; ${sizes.use}` : ''} (default: ${sizes.default})`,
    ).argParser(sizesParser(flag, sizes));
  command
    .addOption(
      new Option('--engine <name>', 'onnx (embedded, CPU), transformers (PyTorch), vllm, openai (a server)')
        .argParser(parseEngineName)
        .default('onnx'),
    )
    .option('--model <spec>', 'preset, config.json, folder or hub id, in the form the engine takes')
    .addOption(
      new Option('--weights <kind>', "random or trained (default: the engine's choice)").choices([
        'random',
        'trained',
      ]),
    )
    .option('--dtype <dtype>', "float32, bfloat16, float16, int4, … (default: the engine's choice)")
    .option('--device <device>', "cpu, cuda, cuda:1, … (default: the engine's choice)")
    .option('--threads <n>', 'CPU threads for compute', parseThreadCount)
    .addOption(sizeOption('--batch-size', help.batchSize, 'sequences per batch'))
    .addOption(sizeOption('--input-len', help.inputLen, 'prompt tokens per sequence'))
    .addOption(sizeOption('--output-len', help.outputLen, 'generated tokens per sequence'));
  if (verb === 'sequence' || verb === 'suite')
    command.option('--grid', 'measure all prompts × all outputs instead of one axis at a time');
  return command
    .option(
      '--engine-arg <key=value>',
      'argument for the engine; key=a,b measures one variant per value',
      collect,
    )
    .option('--url <url>', 'server for --engine openai, e.g. http://127.0.0.1:8000/v1')
    .option('--python <path>', 'Python for engines in Python (default: the first that has the engine)')
    .option(
      '--runs <n>',
      'timed repeats per point and launch',
      wholeNumberParser('--runs', { min: 1, example: 5 }),
      5,
    )
    .option(
      '--launches <n>',
      'process launches; intervals are computed over them',
      wholeNumberParser('--launches', { min: 1, example: 3 }),
      3,
    )
    .option(
      '--seed <n>',
      'seed for weights and prompts',
      wholeNumberParser('--seed', { min: 0, example: 1 }),
      0,
    )
    .option('--no-device-work', "skip the repeat under the framework's profiler")
    .option('--fresh-roofline', "measure this machine's roofline again (engine onnx)")
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--output <folder>', 'folder for baseline_metrics.json and the CSV files', './results')
    .option('--json', 'print one inferscope/bench document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText('after', examples(...help.examples))
    .action(async (options: BenchOptions) => {
      const { benchCommand } = await import('./bench-command.js');
      await benchCommand(verb, options);
    });
}
