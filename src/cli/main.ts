#!/usr/bin/env node
import process from 'node:process';
import { Command, CommanderError } from 'commander';
import { toolVersion } from '../model/version.js';
import { asStorageFailure } from '../session/storage-failure.js';
import { commands } from './commands.js';
import { leaveUnlessHandled } from './interrupt.js';
import { reportError } from './output.js';
import { aliasRepeats } from './runs-option.js';
import { usageError } from './usage-error.js';

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
  if (command.options.some(({ long }) => long === '--runs')) aliasRepeats(command);
  for (const child of command.commands) applyToAll(child);
}

let readerGone = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (readerGone) return;
  readerGone = true;
  // `inferscope sql … | head` closes the pipe early: that is the reader's choice, not a failure. A command that keeps
  // what it measured when it is interrupted is interrupted.
  if (error.code !== 'EPIPE') process.exit(reportError(asStorageFailure(error, stdoutPlace), false));
  else if (process.listenerCount('SIGINT') > 1) process.kill(process.pid, 'SIGINT');
  else process.exit(0);
});
// Nobody reads the talk any more (2>&1 | head, a closed terminal): what is measured is still wanted.
process.stderr.on('error', () => {});
leaveUnlessHandled();
// Thrown where nobody could catch it, in a timer or an event: Node would exit with 1, which means a check that failed.
process.on('uncaughtException', (error) => process.exit(reportError(error, false)));

process.exitCode = await main(process.argv.slice(2));
