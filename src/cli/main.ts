#!/usr/bin/env node
import process from 'node:process';
import { Command, CommanderError } from 'commander';
import { toolVersion } from '../model/version.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { commands } from './commands.js';
import { exitOnUnhandledSignals } from './interrupt.js';
import { reportError } from './output.js';
import { aliasRepeats } from './runs-option.js';
import { usageError } from './usage-error.js';

/** stdout may be redirected to a file on a full disk. */
const stdoutPlace = { path: '/dev/stdout', doing: 'write the output' };

async function main(argv: string[]): Promise<number> {
  // After the first `--` comes another program's command line with its own options.
  const ownArguments = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const [first, second] = ownArguments.filter((word) => !word.startsWith('-'));
  // `help run` shows what `run --help` does, so it needs that command's definition.
  const commandName = first === 'help' ? second : first;
  const json = ownArguments.includes('--json');
  const program = new Command('inferscope')
    .description(
      'LLM inference profiler: where time and memory go, how far from the hardware limits, and why.',
    )
    .version(toolVersion, '-V, --version')
    .commandsGroup('Setup:')
    .helpCommand(true)
    .enablePositionalOptions()
    .hook('preAction', async (_, action) => {
      const { applyConfig } = await import('./config.js');
      await applyConfig(action);
    })
    .configureOutput({ writeErr: () => {} })
    .exitOverride();

  for (const entry of commands) {
    const command = program
      .command(entry.name)
      .summary(entry.summary)
      .description(entry.summary)
      .helpGroup(`${entry.group}:`);
    if (entry.alias) command.alias(entry.alias);
    if (commandName === entry.name || (entry.alias && commandName === entry.alias)) {
      const { define } = await entry.load();
      define(command);
      configureSubcommands(command);
    }
  }
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      return reportError(
        usageError(error, { commandName, invoked: invokedCommand(program, ownArguments), commands }),
        json,
      );
    }
    return reportError(error, json);
  }
}

/** The typed command or its subcommand: session, session show. */
function invokedCommand(program: Command, ownArguments: readonly string[]): Command | undefined {
  const [first, second] = ownArguments.filter((word) => !word.startsWith('-'));
  const named = (commands: readonly Command[] | undefined, word: string | undefined) =>
    commands?.find((command) => word !== undefined && [command.name(), ...command.aliases()].includes(word));
  const command = named(program.commands, first);
  return named(command?.commands, second) ?? command;
}

/** Subcommands defined after their parent was configured do not inherit these settings. */
function configureSubcommands(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: () => {} });
  // The parent's help command is in the group Setup.
  if (command.commands.length > 0)
    command.commandsGroup('Commands:').helpCommand('help [command]', 'display help for command');
  if (command.options.some(({ long }) => long === '--runs')) aliasRepeats(command);
  for (const child of command.commands) configureSubcommands(child);
}

let readerGone = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (readerGone) return;
  readerGone = true;
  // `inferscope sql … | head` closes the pipe early, which is not a failure. A command that saves partial results on an
  // interrupt is interrupted.
  if (error.code !== 'EPIPE') process.exit(reportError(asStorageFailure(error, stdoutPlace), false));
  else if (process.listenerCount('SIGINT') > 1) process.kill(process.pid, 'SIGINT');
  else process.exit(0);
});
// stderr is closed (2>&1 | head, a closed terminal): continue to measure.
process.stderr.on('error', () => {});
exitOnUnhandledSignals();
// Thrown in a timer or an event: Node would exit with code 1, which is reserved for failed checks.
process.on('uncaughtException', (error) => process.exit(reportError(error, false)));

process.exitCode = await main(process.argv.slice(2));
