import { existsSync } from 'node:fs';
import type { Command, CommanderError } from 'commander';
import { benchParts } from '../model/bench.js';
import { InferscopeError } from '../model/errors.js';
import { nearest } from '../model/nearest.js';
import { shellCommand } from '../model/shell.js';

/** Parents of subcommands, for users who type a subcommand without its parent. */
const parentsOf = new Map<string, readonly string[]>([
  ...['show', 'rename', 'tag', 'note', 'join', 'delete', 'rm', 'verify', 'utilization'].map(
    (verb) => [verb, ['session']] as const,
  ),
  ...['list', 'ls', 'set'].map((verb) => [verb, ['session', 'baseline']] as const),
  ['check', ['baseline']],
  ...[...benchParts, 'suite'].map((verb) => [verb, ['bench']] as const),
  ['compare', ['session', 'bench', 'memory']],
]);

/** Maximum number of options that an error message lists. */
const maxListed = 8;

interface TypedCommand {
  /** The typed command word, if any. */
  commandName: string | undefined;
  /** The matching command or subcommand. */
  invoked: Command | undefined;
  commands: readonly { name: string; alias?: string }[];
}

/** Converts commander's failures to our three parts; help and version are not failures. */
export function usageError(
  error: CommanderError,
  { commandName: typed, invoked: usageOf, commands }: TypedCommand,
): InferscopeError {
  const known = commands.find(({ name, alias }) => typed !== undefined && [name, alias].includes(typed));
  if (!known) return notKnown(error, typed, commands);
  if (error.code === 'commander.help') {
    // `session` typed alone: commander would print help as an error.
    const verbs = (usageOf?.commands ?? []).map((command) => command.name());
    return usage(
      `inferscope ${typed} needs a subcommand`,
      `It is one of: ${verbs.join(', ')}.`,
      `inferscope ${typed} --help shows each.`,
    );
  }
  const [what, suggestion] = messageParts(error);
  const commandText = `inferscope ${pathOf(usageOf) || known.name}`;
  if (error.code === 'commander.excessArguments') {
    const givenFiles = usageOf?.args ?? [];
    const subcommands = (usageOf?.commands ?? []).map((command) => command.name());
    if (subcommands.length > 0)
      return usage(
        `unknown command '${givenFiles[0]}'`,
        `${commandText} takes ${subcommands.join(', ')}, or options only.`,
        `See ${commandText} --help.`,
      );
    if (givenFiles.length > 1 && givenFiles.every((file) => existsSync(file)))
      return usage(
        what,
        `inferscope ${known.name} takes one session; captures of one run are imported into one.`,
        shellCommand(['inferscope', 'import', ...givenFiles]),
      );
    const flag = ['--question', '--model'].find((name) => usageOf?.options.some(({ long }) => long === name));
    if (flag !== undefined) {
      const [name, value] = flag === '--question' ? ['question', '"…"'] : ['model', 'NAME'];
      return usage(
        what,
        `Usage: ${commandText} ${usageOf!.usage()}`,
        `Use a flag for the ${name}: ${commandText} ${flag} ${value}`,
      );
    }
  }
  return usage(
    what,
    suggestion ?? whyOf(error, `${commandText} ${usageOf?.usage() ?? ''}`.trimEnd(), usageOf),
    known.name === 'run' && error.code === 'commander.unknownOption'
      ? "See inferscope run --help; the program's own options come after --."
      : `See ${commandText} --help.`,
  );
}

function whyOf({ code, message }: CommanderError, usageLine: string, command: Command | undefined): string {
  if (code === 'commander.unknownCommand')
    return `It is one of: ${(command?.commands ?? []).map((known) => known.name()).join(', ')}.`;
  if (code === 'commander.missingArgument' || code === 'commander.excessArguments')
    return `Usage: ${usageLine}`;
  if (code === 'commander.optionMissingArgument') {
    const option = command?.options.find(({ flags }) => message.includes(`'${flags}'`));
    if (option) return `${option.long ?? option.flags}: ${option.description}`;
  }
  const flags = (command?.options ?? []).flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));
  const suggestion = nearest(/'(--[^']+)'/.exec(message)?.[1] ?? '', flags);
  if (code === 'commander.unknownOption' && suggestion !== null) return `Did you mean ${suggestion}?`;
  if (flags.length > 0 && flags.length <= maxListed) return `It takes ${flags.join(', ')}.`;
  // Some commands are used in several ways, one per line.
  return `Usage: ${usageLine.split('\n')[0]}`;
}

function notKnown(
  error: CommanderError,
  commandName: string | undefined,
  commands: TypedCommand['commands'],
): InferscopeError {
  const all = 'See inferscope --help.';
  const [what, suggestion] = messageParts(error);
  if (commandName === undefined)
    return usage(what, suggestion ?? 'Only --help and -V, --version are allowed before a command.', all);
  const parents = parentsOf.get(commandName);
  const unknown = `unknown command '${commandName}'`;
  if (!parents)
    return usage(unknown, suggestion ?? `It is one of: ${commands.map(({ name }) => name).join(', ')}.`, all);
  const lines = parents.map((parent) => `inferscope ${parent} ${commandName}`);
  return usage(unknown, `It is a subcommand of ${parents.join(', ')}.`, `Type: ${lines.join(', or ')}`);
}

/** Commander's message without its prefix, and its suggestion or the choices. */
function messageParts({ message }: CommanderError): [string, string | undefined] {
  const [what = message, suggestion] = message
    .replace(/^error: /, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*)'(?=\.)/, 'unknown $2 "$1"')
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid(?=\.)/, 'invalid $1 $2')
    .split(/\n|\. (?=Allowed)/);
  return [what.replace(/\.$/, ''), suggestion?.replace(/^\((.*)\)$/, '$1')];
}

/** `session show` */
function pathOf(command: Command | undefined): string {
  const names: string[] = [];
  for (let ancestor = command; ancestor?.parent; ancestor = ancestor.parent) names.unshift(ancestor.name());
  return names.join(' ');
}

function usage(what: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix });
}
