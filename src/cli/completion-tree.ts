import type { Argument, Command, Option } from 'commander';

/** What may stand in one place of a command line. */
export type Values =
  | { kind: 'words'; words: string[]; /** Several, with commas between. */ list: boolean }
  | { kind: 'sessions' | 'files' | 'program' | 'free' };

export interface CompletionOption {
  /** `-o`, `--output` */
  flags: string[];
  description: string;
  /** Null: it takes no value. */
  values: Values | null;
}

export interface CompletionCommand {
  /** `session show`; empty for inferscope itself. */
  path: string;
  /** As typed below its parent, aliases last. */
  names: string[];
  description: string;
  options: CompletionOption[];
  arguments: { values: Values; variadic: boolean }[];
}

/** Every command that `--help` shows, parents first, from what commander was told. */
export function completionTree(program: Command): CompletionCommand[] {
  return walk(program, '');
}

function walk(command: Command, path: string): CompletionCommand[] {
  const own: CompletionCommand = {
    path,
    names: [command.name(), ...command.aliases()],
    description: command.summary() || command.description(),
    options: [
      ...command.options.filter(({ hidden }) => !hidden).map(optionOf),
      { flags: ['-h', '--help'], description: 'display help for command', values: null },
    ],
    arguments: command.registeredArguments.map(argumentOf),
  };
  const children = command.createHelp().visibleCommands(command);
  const below = children.filter((child) => command.commands.includes(child));
  return [
    own,
    ...below.flatMap((child) => walk(child, path === '' ? child.name() : `${path} ${child.name()}`)),
  ];
}

function optionOf(option: Option): CompletionOption {
  const name = /[<[]([^\]>.]+)/.exec(option.flags)?.[1];
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    values:
      name === undefined ? null : valuesOf(name, option.argChoices, option.description, option.variadic),
  };
}

function argumentOf(argument: Argument) {
  const { description, argChoices, variadic } = argument;
  return { values: valuesOf(argument.name(), argChoices, description, false), variadic };
}

function valuesOf(name: string, choices: string[] | undefined, description: string, many: boolean): Values {
  if (/^(selector|sessions?)$/.test(name)) return { kind: 'sessions' };
  if (name === 'command') return { kind: 'program' };
  const words = choices ?? listedWords(description);
  if (words) return { kind: 'words', words, list: many || name === 'list' };
  const file =
    /^(files?|paths?|folder|dir|model|cli|captures?|python)$/.test(name) ||
    /\b(config\.json|folder|a file)\b/.test(description);
  return { kind: file ? 'files' : 'free' };
}

/**
 * Many options check their words themselves and name them in their help: "nsys, ncu, torch, none; several …",
 * "table, csv or json", "one of profile, doctor", "also fail when one of these is not ok: node, engine".
 */
export function listedWords(description: string): string[] | null {
  const word = '[a-z0-9][\\w.+-]*';
  const list = new RegExp(
    `(?:^|^one of |: )(${word}(?:, ${word})+(?: or ${word})?|${word} or ${word})(?=$|;|:(?=\\s)| \\()`,
    'i',
  );
  const found = list.exec(description)?.[1];
  return found ? found.split(/, | or /) : null;
}
