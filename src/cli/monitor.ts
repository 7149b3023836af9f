import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { Option, type Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { shellCommand } from '../model/shell.js';
import { durationParser } from './durations.js';
import { collect, areAfterDashes } from './command-line.js';
import { examples } from './examples.js';
import type { MonitorCommandOptions } from './monitor-session.js';
import { isAlive } from '../model/alive.js';

export function define(command: Command): void {
  command
    .usage('[options] [file...]\n       inferscope monitor [options] --while -- command…')
    .argument('[file...]', 'nvidia-smi recordings to summarize instead (dmon -o TD, --query-gpu CSV)')
    .option(
      '--duration <time>',
      'stop after this time (default: on Ctrl-C)',
      durationParser('--duration', { example: '30s' }),
    )
    .addOption(
      new Option('--hz <n>', 'samples per second, 1 to 50; AMD GPUs are sampled once per second')
        .argParser(parseHz)
        .default(20),
    )
    .option('--pid <n>', 'also sample this process and its descendants', parseProcessId)
    .option('--while', 'record while the command after -- runs')
    .option('--record', 'save a session (implied by --name and --tag)')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(collect).default([], 'none'))
    .addOption(
      new Option('--idle-below <percent>', 'utilization below this is idle')
        .argParser(parsePercent)
        .default(5),
    )
    .addOption(
      new Option('--idle-for <time>', 'shortest idle period to report')
        .argParser(durationParser('--idle-for', { example: '500ms' }))
        .default(500, '500ms'),
    )
    .option('--require-gpu', 'exit with code 3 if no GPU can be read')
    .addOption(
      new Option(
        '--exit-code <from>',
        "exit code of a failed program (--while): own (4) or the program's (child)",
      )
        .choices(['own', 'child'])
        .default('own'),
    )
    .option('--json', "print one inferscope/monitor document at the end; the program's stdout goes to stderr")
    .option('--quiet', 'show only the summary at the end')
    .addHelpText(
      'after',
      examples(
        ['inferscope monitor', 'live view of GPUs and host; summary on Ctrl-C'],
        ['inferscope monitor --record --while -- python serve.py', 'record a session while the program runs'],
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
        await monitorFiles(recordingPaths(words, options), options);
        return;
      }
      const { monitorLive } = await import('./monitor-run.js');
      await monitorLive(options);
    });
}

function parseHz(text: string): number {
  const hz = Number(text);
  if (text.trim() !== '' && hz >= 1 && hz <= 50) return hz;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --hz ${text}`,
    why: 'It must be 1 to 50 samples per second.',
    fix: 'Type for example: --hz 20',
  });
}

function parsePercent(text: string): number {
  const value = Number(text.replace(/%$/, ''));
  if (value > 0 && value <= 100) return value;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --idle-below ${text}`,
    why: 'It is a utilization in percent, above 0 and at most 100.',
    fix: 'Type for example: --idle-below 5',
  });
}

function parseProcessId(text: string): number {
  const pid = Number(text);
  if (!Number.isSafeInteger(pid) || pid <= 0)
    throw new InferscopeError('E_USAGE', {
      what: `invalid --pid ${text}`,
      why: 'It must be the number of a running process.',
      fix: 'Find it with: pgrep -f PROGRAM',
    });
  if (isAlive(pid)) return pid;
  throw new InferscopeError('E_USAGE', {
    what: `--pid ${text} is not a running process`,
    why: 'No process on this machine or in this container has that id.',
    fix: 'Find it with: pgrep -f PROGRAM',
  });
}

function requireCommand(words: string[]): void {
  if (words.length > 0 && areAfterDashes(words)) return;
  throw new InferscopeError('E_USAGE', {
    what: '--while needs the whole command after --',
    why: 'Options before -- are for inferscope; the program and its arguments come after it.',
    fix: `Type: inferscope monitor --while -- ${words.filter((word) => word !== '--').join(' ') || 'python serve.py'}`,
  });
}

function recordingPaths(words: string[], options: MonitorCommandOptions): string[] {
  const liveOption = (['duration', 'pid', 'requireGpu'] as const).find((name) => options[name] !== undefined);
  const missing = words.find((word) => !existsSync(word));
  if (process.argv.includes('--') || (missing !== undefined && !/[./]/.test(missing)))
    throw new InferscopeError('E_USAGE', {
      what: `${missing ?? words[0]} is not a recording`,
      why: 'monitor summarizes nvidia-smi recordings, or samples while a command runs (--while).',
      fix: `Type: ${shellCommand(['inferscope', 'monitor', '--while', '--', ...words])}`,
    });
  if (liveOption !== undefined)
    throw new InferscopeError('E_USAGE', {
      what: `--${liveOption.replace('G', '-g')} does not work with recordings`,
      why: `${words[0]} is already recorded.`,
      fix: 'Remove one of them.',
    });
  return words.map((word) => resolve(word));
}
