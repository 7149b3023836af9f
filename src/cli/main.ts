#!/usr/bin/env node
import process from 'node:process';
import { Command, CommanderError } from 'commander';
import { toolVersion } from '../model/version.js';
import { asStorageFailure } from '../session/storage-failure.js';
import { reportError } from './output.js';
import { usageError } from './usage-error.js';

interface CommandEntry {
  name: string;
  alias?: string;
  summary: string;
  /** The module that defines arguments, options and action; loaded only when the command is the one typed. */
  load: () => Promise<{ define: (command: Command) => void }>;
}

const commands: CommandEntry[] = [
  {
    name: 'profile',
    summary: 'run a transformer on this machine and show where its time and memory go',
    load: () => import('./profile.js'),
  },
  {
    name: 'run',
    summary: 'run a program under nsys, ncu or the PyTorch profiler and explain its time',
    load: () => import('./run.js'),
  },
  {
    name: 'import',
    summary: 'read what nsys, ncu, the PyTorch profiler and others recorded',
    load: () => import('./import.js'),
  },
  {
    name: 'explain',
    summary: "where the time beyond the hardware's limit goes, why, and what to change",
    load: () => import('./explain.js'),
  },
  {
    name: 'analyze',
    summary: 'answer a question from a session: a model with checked numbers, or without one',
    load: () => import('./analyze.js'),
  },
  {
    name: 'bench',
    summary: 'how fast a model is and how it scales, on every engine or a server under load',
    load: () => import('./bench.js'),
  },
  {
    name: 'memory',
    summary: 'what a model took: baseline, after warm-up, peak, by component, on any engine',
    load: () => import('./memory.js'),
  },
  {
    name: 'serve',
    summary: 'the embedded model behind an OpenAI-compatible endpoint, to try bench on',
    load: () => import('./serve.js'),
  },
  {
    name: 'monitor',
    summary: 'GPUs and host while something runs: live, recorded, idle and throttled times marked',
    load: () => import('./monitor.js'),
  },
  {
    name: 'roofline',
    summary: "measure this machine's peak FLOP/s and memory bandwidth",
    load: () => import('./roofline.js'),
  },
  {
    name: 'kernels',
    summary: 'time the operations of LLMs, or of one model, and how close each comes to its roof',
    load: () => import('./kernels.js'),
  },
  {
    name: 'estimate',
    summary: 'memory, parameters, FLOPs and bytes of a model that is not run, and what fits a GPU',
    load: () => import('./estimate.js'),
  },
  {
    name: 'validate',
    summary: 'the memory calculator against measured profiles: how far off, and which constant',
    load: () => import('./validate.js'),
  },
  {
    name: 'predict',
    summary: 'prefill and decode times of a model on a device, from its roofs and measured kernels',
    load: () => import('./predict.js'),
  },
  {
    name: 'gemm',
    summary: 'matrix products of a session by shape: time, roof, tiles, and what another size would give',
    load: () => import('./gemm.js'),
  },
  {
    name: 'sweep',
    summary: 'memory and latency of many configurations, or any command over a grid; resumable',
    load: () => import('./sweep.js'),
  },
  { name: 'report', summary: 'write the HTML report of a session', load: () => import('./report.js') },
  { name: 'session', summary: 'list, show, name, move, verify sessions', load: () => import('./session.js') },
  {
    name: 'baseline',
    summary: 'keep figures of a session, and say which later changes are real',
    load: () => import('./baseline.js'),
  },
  { name: 'sql', summary: "query sessions' tables with SQL (read-only)", load: () => import('./sql.js') },
  {
    name: 'export',
    summary: 'write a session for Perfetto, speedscope, a spreadsheet or Prometheus',
    load: () => import('./export.js'),
  },
  {
    name: 'doctor',
    alias: 'setup',
    summary: 'what of this machine inferscope can use, and how to get the rest',
    load: () => import('./doctor.js'),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of a document inferscope writes',
    load: () => import('./schema.js'),
  },
  {
    name: 'completion',
    summary: 'print the script that completes commands and sessions in bash, zsh or fish',
    load: async () => ({ define: (await import('./completion.js')).defineCompletion(commands) }),
  },
];

/** Where output goes that the user sent elsewhere: > file, on a disk that may be full. */
const stdoutPlace = { path: '/dev/stdout', doing: 'write the output' };

async function main(argv: string[]): Promise<number> {
  // Behind the first `--` stands another program's command line: its --json is not ours.
  const own = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const [first, second] = own.filter((word) => !word.startsWith('-'));
  // `help run` shows what `run --help` does, so it needs that command's definition.
  const typed = first === 'help' ? second : first;
  const json = own.includes('--json');
  const program = new Command('inferscope')
    .description(
      'LLM inference profiler: where time and memory go, how far that is from the hardware, and why.',
    )
    .version(toolVersion, '-V, --version')
    .enablePositionalOptions()
    .hook('preAction', async (_, action) => {
      const { applyConfig } = await import('./config.js');
      await applyConfig(action);
    })
    .configureOutput({ writeErr: () => {} })
    .exitOverride();

  for (const entry of commands) {
    const command = program.command(entry.name).summary(entry.summary).description(entry.summary);
    if (entry.alias) command.alias(entry.alias);
    if (typed === entry.name || (entry.alias && typed === entry.alias)) {
      const { define } = await entry.load();
      define(command);
      applyToAll(command);
    }
  }
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      return reportError(usageError(error, { typed, usageOf: typedCommand(program, own), commands }), json);
    }
    return reportError(error, json);
  }
}

/** The command that was typed, or the command below it: session, session show. */
function typedCommand(program: Command, own: readonly string[]): Command | undefined {
  const [first, second] = own.filter((word) => !word.startsWith('-'));
  const command = program.commands.find((one) => one.name() === first);
  return command?.commands.find((one) => one.name() === second) ?? command;
}

/** Subcommands do not inherit these when they are defined after their parent was configured. */
function applyToAll(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: () => {} });
  for (const child of command.commands) applyToAll(child);
}

let readerGone = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (readerGone) return;
  readerGone = true;
  // `inferscope sql … | head` closes the pipe early: that is the reader's choice, not a failure. A command that keeps
  // what it measured when it is interrupted is interrupted.
  if (error.code !== 'EPIPE') process.exit(reportError(asStorageFailure(error, stdoutPlace), false));
  else if (process.listenerCount('SIGINT') > 0) process.kill(process.pid, 'SIGINT');
  else process.exit(0);
});
// Nobody reads the talk any more (2>&1 | head, a closed terminal): what is measured is still wanted.
process.stderr.on('error', () => {});
// Thrown where nobody could catch it, in a timer or an event: Node would exit with 1, which means a check that failed.
process.on('uncaughtException', (error) => process.exit(reportError(error, false)));

process.exitCode = await main(process.argv.slice(2));
