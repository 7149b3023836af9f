import process from 'node:process';
import { Option, type Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { duration } from './durations.js';
import { examples } from './examples.js';
import { wholeNumber } from './numbers.js';
import type { RunCommandOptions, RunCommandRange } from './run-session.js';

export function define(command: Command): void {
  const several = (word: string, before: string[]) => [...before, word];
  command
    .usage('[options] -- command…')
    .argument('<command...>', 'the program and its arguments, passed on untouched')
    .passThroughOptions()
    .addOption(
      new Option(
        '--evaluator <list>',
        'nsys, ncu, torch, none; several (nsys,torch,ncu) repeat the command into one session',
      )
        .argParser(several)
        .default([], 'nsys where found, else torch for Python, else none'),
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(several).default([], 'none'))
    .option('--no-analyze', 'only record and keep: no summary, no report')
    .option('--gemm-log', 'one more execution with the logs of cuBLAS and cuBLASLt on: GEMM shapes')
    .addOption(
      new Option('--capture-range <range>', 'cudaProfilerApi, nvtx:NAME or none: what nsys records')
        .argParser(captureRange)
        .default(null, 'none: everything, loading and warm-up included'),
    )
    .addOption(
      new Option('--nsys-trace <list>', 'traced beside cuda,nvtx: cublas, cudnn, osrt, …')
        .argParser((word, before: string[]) => [...before, ...word.split(',').filter(Boolean)])
        .default([], 'none'),
    )
    .addOption(
      new Option('--nsys-arg <arg>', 'passed on to nsys profile').argParser(several).default([], 'none'),
    )
    .addOption(
      new Option('--ncu-set <set>', 'metrics of ncu')
        .choices(['full', 'basic', 'detailed', 'roofline'])
        .default('full'),
    )
    .option('--ncu-kernel <regex>', 'kernels ncu profiles (default: the hot ones of the nsys execution)')
    .addOption(
      new Option('--ncu-nvtx <filter>', "ncu's NVTX filter, e.g. decode/")
        .argParser(several)
        .default([], 'none'),
    )
    .option(
      '--ncu-launch-count <n>',
      'launches profiled of each kernel and launch size',
      wholeNumber('--ncu-launch-count', 1, 1),
      1,
    )
    .option('--ncu-session <selector>', 'take the hot kernels from this session')
    .addOption(new Option('--ncu-arg <arg>', 'passed on to ncu').argParser(several).default([], 'none'))
    .option('--no-torch-shapes', 'torch: without the shapes of operators')
    .option('--torch-memory', 'torch: allocations of operators')
    .option('--torch-stack', 'torch: Python call paths (slow)')
    .option('--torch-flops', "torch: the profiler's own FLOP counts")
    .option('--timeout <duration>', 'of each execution, e.g. 90s, 10m', duration('--timeout', '10m'))
    .addOption(
      new Option('--exit-code <whose>', "child: end with the program's own exit code")
        .choices(['own', 'child'])
        .default('own', '4 when the program failed'),
    )
    .option('--json', "print one document; the program's stdout goes to stderr")
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope run --name b1 -- python decode.py --batch-size 1',
          'a session with stages, kernels, idle time',
        ],
        [
          'inferscope run --evaluator nsys,ncu --ncu-set full -- python decode.py',
          'where the time goes, then counters of the hot kernels',
        ],
      ),
    )
    .action(async (words: string[], options: RunCommandOptions) => {
      requireDashes(words);
      const { runCommand } = await import('./run-session.js');
      await runCommand(words, options, command);
    });
}

/** Without `--` nobody could tell whose option `--name` is. */
function requireDashes(words: string[]): void {
  const argv = process.argv.slice(2);
  const dashes = argv.indexOf('--');
  if (dashes >= 0 && argv.length - dashes - 1 === words.length) return;
  const program = words.filter((word) => word !== '--').join(' ');
  throw new InferscopeError('E_USAGE', {
    what: `run needs -- before the program (${words[0]})`,
    why: 'What stands before -- is for inferscope, what stands behind it is the program and its arguments.',
    fix: `Type: inferscope run [options] -- ${program}`,
  });
}

/** `nvtx:decode` and `nvtx decode` alike. */
export function captureRange(text: string): RunCommandRange {
  if (text === 'none') return null;
  if (text === 'cudaProfilerApi') return { kind: 'cudaProfilerApi' };
  const name = /^nvtx[:\s]\s*(.+)$/.exec(text)?.[1];
  if (name) return { kind: 'nvtx', name };
  throw new InferscopeError('E_USAGE', {
    what: `--capture-range ${text} is unknown`,
    why: 'It is cudaProfilerApi (between cudaProfilerStart and cudaProfilerStop), nvtx:NAME, or none.',
    fix: 'Type for example: --capture-range nvtx:decode',
  });
}
