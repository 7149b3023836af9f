import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { Option, type Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { duration } from './durations.js';
import { examples } from './examples.js';
import type { MonitorCommandOptions } from './monitor-session.js';

export function define(command: Command): void {
  const several = (word: string, before: string[]) => [...before, word];
  command
    .usage('[options] [file...]\n       inferscope monitor [options] --while -- command…')
    .argument('[file...]', 'recordings of nvidia-smi (dmon -o TD, --query-gpu CSV) to sum up instead')
    .option('--duration <time>', 'end after it (default: Ctrl-C ends it)', duration('--duration', '30s'))
    .addOption(
      new Option('--hz <n>', 'samples a second, 1 to 50; AMD GPUs are read once a second')
        .argParser(rate)
        .default(20),
    )
    .option('--pid <n>', 'a running process to watch beside, with its descendants', processId)
    .option('--while', 'from before the command behind -- starts until it ends')
    .option('--record', 'keep a session; --name and --tag do too')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(several).default([], 'none'))
    .addOption(
      new Option('--idle-below <percent>', 'utilisation that counts as idle').argParser(percent).default(5),
    )
    .addOption(
      new Option('--idle-for <time>', 'shortest idle period told')
        .argParser(duration('--idle-for', '500ms'))
        .default(500, '500ms'),
    )
    .option('--require-gpu', 'end with exit code 3 where no GPU can be read')
    .addOption(
      new Option('--exit-code <whose>', "child: end with the program's own exit code (--while)")
        .choices(['own', 'child'])
        .default('own', '4 when the program failed'),
    )
    .option('--json', "print one inferscope/monitor document at the end; the program's stdout goes to stderr")
    .option('--quiet', 'only the summary at the end')
    .addHelpText(
      'after',
      examples(
        ['inferscope monitor', 'a live view of GPUs and host; Ctrl-C sums it up'],
        [
          'inferscope monitor --record --while -- python serve.py',
          'a session of all that happened meanwhile',
        ],
      ),
    )
    .action(async (words: string[], options: MonitorCommandOptions) => {
      if (options.while) {
        requireCommand(words);
        const { monitorProgram } = await import('./monitor-program.js');
        await monitorProgram(words, options);
        return;
      }
      if (words.length > 0) {
        const { monitorFiles } = await import('./monitor-files.js');
        await monitorFiles(recordings(words, options), options);
        return;
      }
      const { monitorLive } = await import('./monitor-run.js');
      await monitorLive(options);
    });
}

function rate(text: string): number {
  const hz = Number(text);
  if (text.trim() !== '' && hz >= 1 && hz <= 50) return hz;
  throw new InferscopeError('E_USAGE', {
    what: `--hz ${text} is impossible`,
    why: 'Samples are taken 1 to 50 times a second.',
    fix: 'Type for example: --hz 20',
  });
}

function percent(text: string): number {
  const value = Number(text.replace(/%$/, ''));
  if (value > 0 && value <= 100) return value;
  throw new InferscopeError('E_USAGE', {
    what: `--idle-below ${text} is no share`,
    why: 'It is a utilisation in percent, above 0 and at most 100.',
    fix: 'Type for example: --idle-below 5',
  });
}

function processId(text: string): number {
  const pid = Number(text);
  try {
    if (Number.isSafeInteger(pid) && pid > 0) {
      process.kill(pid, 0);
      return pid;
    }
  } catch (error) {
    // EPERM: somebody else's, but there.
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return pid;
  }
  throw new InferscopeError('E_USAGE', {
    what: `--pid ${text} is no running process`,
    why: 'No process of this machine or container has that number.',
    fix: 'Look it up: pgrep -f PROGRAM',
  });
}

function requireCommand(words: string[]): void {
  const argv = process.argv.slice(2);
  const dashes = argv.indexOf('--');
  if (words.length > 0 && dashes >= 0 && argv.length - dashes - 1 === words.length) return;
  throw new InferscopeError('E_USAGE', {
    what: '--while needs -- and a command behind it',
    why: 'What stands before -- is for inferscope, what stands behind it is the program and its arguments.',
    fix: `Type: inferscope monitor --while -- ${words.filter((word) => word !== '--').join(' ') || 'python serve.py'}`,
  });
}

function recordings(words: string[], options: MonitorCommandOptions): string[] {
  const live = (['duration', 'pid', 'requireGpu'] as const).find((name) => options[name] !== undefined);
  const missing = words.find((word) => !existsSync(word));
  if (process.argv.includes('--') || (missing !== undefined && !/[./]/.test(missing)))
    throw new InferscopeError('E_USAGE', {
      what: `${missing ?? words[0]} is no recording`,
      why: 'monitor sums up recordings of nvidia-smi, or watches a command with --while.',
      fix: `Type: inferscope monitor --while -- ${words.join(' ')}`,
    });
  if (live !== undefined)
    throw new InferscopeError('E_USAGE', {
      what: `--${live.replace('G', '-g')} does not go with recordings`,
      why: `${words[0]} was recorded already.`,
      fix: 'Leave the one or the other away.',
    });
  return words.map((word) => resolve(word));
}
