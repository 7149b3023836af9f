import { Option, type Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { defineContextOptions } from './context-options.js';
import { durationParser } from './durations.js';
import { collect, areAfterDashes } from './command-line.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';
import type { RunCommandOptions, RunCommandRange } from './run-session.js';

export function define(command: Command): void {
  command
    .usage('[options] -- command…')
    .argument('<command...>', 'program and its arguments, passed unchanged')
    .passThroughOptions()
    .addOption(
      new Option(
        '--evaluator <list>',
        'nsys, ncu, torch, none; a list (nsys,torch,ncu) runs the command once per evaluator',
      )
        .argParser(collect)
        .default([], 'nsys if found, else torch for Python, else none'),
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(collect).default([], 'none'))
    .option('--no-analyze', 'record only; no summary, no report')
    .option('--gemm-log', 'run once more with cuBLAS and cuBLASLt logs, for GEMM shapes')
    .addOption(
      new Option('--capture-range <range>', 'range that nsys records: cudaProfilerApi, nvtx:NAME or none')
        .argParser(parseCaptureRange)
        .default(null, 'none: everything, including loading and warm-up'),
    )
    .addOption(
      new Option(
        '--nsys-trace <list>',
        'nsys traces in addition to cuda,nvtx: cublas, cudnn, osrt (OS calls and context switches), …',
      )
        .argParser((word, before: string[]) => [...before, ...word.split(',').filter(Boolean)])
        .default([], 'none'),
    )
    .addOption(
      new Option('--nsys-arg <arg>', 'argument for nsys profile').argParser(collect).default([], 'none'),
    )
    .addOption(
      new Option('--ncu-set <set>', 'metric set of ncu')
        .choices(['full', 'basic', 'detailed', 'roofline'])
        .default('full'),
    )
    .option(
      '--ncu-kernel <regex>',
      'kernels to profile with ncu (default: hot kernels of the nsys execution)',
    )
    .addOption(
      new Option('--ncu-nvtx <filter>', 'NVTX filter of ncu, e.g. "regex:decode/"')
        .argParser(collect)
        .default([], 'none'),
    )
    .option(
      '--ncu-launch-count <n>',
      'profiled launches per kernel and launch size',
      wholeNumberParser('--ncu-launch-count', { min: 1, example: 1 }),
      1,
    )
    .option('--ncu-session <selector>', 'session to take hot kernels from')
    .addOption(new Option('--ncu-arg <arg>', 'argument for ncu').argParser(collect).default([], 'none'))
    .option(
      '--job <name>',
      'under srun, torchrun or mpirun: name that the ranks have in common (default: from the launcher)',
    )
    .option('--no-ranks', 'under a launcher: a session per rank instead of one of all ranks')
    .option('--no-hooks', 'do not mark the steps of PyTorch programs (also: INFERSCOPE_HOOKS=off)')
    .option('--no-torch-shapes', 'torch: do not record operator shapes')
    .option('--torch-memory', 'torch: record allocations per operator')
    .option('--torch-stack', 'torch: record Python call stacks (slow)')
    .option('--torch-flops', "torch: record the profiler's FLOP counts")
    .option(
      '--timeout <duration>',
      'timeout per execution, e.g. 90s, 10m',
      durationParser('--timeout', { example: '10m' }),
    )
    .addOption(
      new Option('--exit-code <from>', "exit code of a failed program: own (4) or the program's (child)")
        .choices(['own', 'child'])
        .default('own', 'own; of a rank of a job: child'),
    )
    .option('--json', "print one document; the program's stdout goes to stderr")
    .option('--quiet', 'no progress on stderr');
  defineContextOptions(command)
    .addHelpText(
      'after',
      examples(
        [
          'inferscope run --name b1 -- python decode.py --batch-size 1',
          'record stages, kernels and idle time',
        ],
        [
          'inferscope run --evaluator nsys,ncu --ncu-set full -- python decode.py',
          'record a timeline, then counters of the hot kernels',
        ],
      ),
    )
    .action(async (words: string[], options: RunCommandOptions) => {
      requireDashes(words);
      const { runCommand } = await import('./run-session.js');
      await runCommand(words, options, command);
    });
}

function requireDashes(words: string[]): void {
  if (areAfterDashes(words)) return;
  const program = words.filter((word) => word !== '--').join(' ');
  throw new InferscopeError('E_USAGE', {
    what: `run needs -- before the program (${words[0]})`,
    why: 'Options before -- are for inferscope; the program and its arguments come after it.',
    fix: `Type: inferscope run [options] -- ${program}`,
  });
}

/** Accepts `nvtx:decode` and `nvtx decode`. */
export function parseCaptureRange(text: string): RunCommandRange {
  if (text === 'none') return null;
  if (text === 'cudaProfilerApi') return { kind: 'cudaProfilerApi' };
  const name = /^nvtx[:\s]\s*(.+)$/.exec(text)?.[1];
  if (name) return { kind: 'nvtx', name };
  throw new InferscopeError('E_USAGE', {
    what: `unknown --capture-range ${text}`,
    why: 'Valid: cudaProfilerApi (between cudaProfilerStart and cudaProfilerStop), nvtx:NAME, or none.',
    fix: 'Type for example: --capture-range nvtx:decode',
  });
}
