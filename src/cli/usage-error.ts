import type { Command, CommanderError } from 'commander';
import { InferscopeError } from '../model/errors.js';

/** Verbs that stand below others, for who types them alone. */
const parentsOf = new Map<string, readonly string[]>([
  ...['list', 'ls', 'show', 'rename', 'tag', 'note', 'delete', 'rm', 'verify', 'utilization'].map(
    (verb) => [verb, ['session']] as const,
  ),
  ...['latency', 'throughput', 'sequence', 'suite'].map((verb) => [verb, ['bench']] as const),
  ['compare', ['session', 'bench', 'memory']],
]);

interface Typed {
  /** The command's word, if there was one. */
  typed: string | undefined;
  /** The command it was found to be, or the one below it. */
  usageOf: Command | undefined;
  commands: readonly { name: string; alias?: string }[];
}

/** Commander's own failures in our three parts; help and version are not failures. */
export function usageError(error: CommanderError, { typed, usageOf, commands }: Typed): InferscopeError {
  const known = commands.find(({ name, alias }) => typed !== undefined && [name, alias].includes(typed));
  if (!known) return notKnown(error, typed, commands);
  if (error.code === 'commander.help') {
    // `session` typed alone: commander would show the help as an error, here it is one like all others.
    const verbs = (usageOf?.commands ?? []).map((command) => command.name());
    return usage(
      `inferscope ${typed} needs one more word`,
      `It is one of: ${verbs.join(', ')}.`,
      `inferscope ${typed} --help shows each.`,
    );
  }
  const [what, suggestion] = said(error);
  const words = `inferscope ${pathOf(usageOf) || known.name}`;
  if (error.code === 'commander.excessArguments' && usageOf?.options.some(({ long }) => long === '--model')) {
    return usage(
      what,
      `Usage: ${words} ${usageOf.usage()}`,
      `A model is named by a flag: ${words} --model NAME`,
    );
  }
  return usage(
    what,
    suggestion ?? whyOf(error, `${words} ${usageOf?.usage() ?? ''}`.trimEnd(), usageOf),
    known.name === 'run' && error.code === 'commander.unknownOption'
      ? "inferscope run --help lists what can be typed; the program's own options stand behind --."
      : `${words} --help lists what can be typed.`,
  );
}

function whyOf({ code }: CommanderError, usageLine: string, command: Command | undefined): string {
  if (code === 'commander.missingArgument' || code === 'commander.excessArguments')
    return `Usage: ${usageLine}`;
  if (code === 'commander.optionMissingArgument') return 'Nothing stands behind it.';
  const flags = (command?.options ?? []).flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));
  return flags.length > 0 ? `It takes ${flags.join(', ')}.` : `Usage: ${usageLine}`;
}

function notKnown(
  error: CommanderError,
  typed: string | undefined,
  commands: Typed['commands'],
): InferscopeError {
  const all = 'inferscope --help lists what can be typed.';
  const [what, suggestion] = said(error);
  if (typed === undefined)
    return usage(what, suggestion ?? 'Before a command stand --help and -V, --version.', all);
  const parents = parentsOf.get(typed);
  const unknown = `unknown command '${typed}'`;
  if (!parents)
    return usage(unknown, suggestion ?? `It is one of: ${commands.map(({ name }) => name).join(', ')}.`, all);
  const lines = parents.map((parent) => `inferscope ${parent} ${typed}`);
  return usage(unknown, `It belongs to ${parents.join(', ')}.`, `Type: ${lines.join(', or ')}`);
}

/** What commander says, without its own prefix, and its suggestion or the choices there are. */
function said({ message }: CommanderError): [string, string | undefined] {
  const [what = message, suggestion] = message.replace(/^error: /, '').split(/\n|\. (?=Allowed)/);
  return [what.replace(/\.$/, ''), suggestion];
}

/** `session show` */
function pathOf(command: Command | undefined): string {
  const names: string[] = [];
  for (let one = command; one?.parent; one = one.parent) names.unshift(one.name());
  return names.join(' ');
}

function usage(what: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix });
}
