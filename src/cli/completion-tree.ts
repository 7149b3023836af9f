import type { Argument, Command, Option } from 'commander';
import { argumentWords, type ValueWords, optionWords } from './completion-values.js';

/** What is allowed at one position of a command line. */
export type Values =
  | { kind: 'words'; words: string[]; /** Several, separated by commas. */ list: boolean }
  | { kind: 'sessions' | 'files' | 'program' | 'free' };

interface CompletionOption {
  /** `-o`, `--output` */
  flags: string[];
  description: string;
  /** Null: it takes no value. */
  values: Values | null;
}

export interface CompletionCommand {
  /** `session show`; empty for inferscope itself. */
  path: string;
  /** As typed after its parent, aliases last. */
  names: string[];
  description: string;
  options: CompletionOption[];
  arguments: { values: Values; variadic: boolean }[];
}

/** Every command in `--help`, parents first, from the commander definitions. */
export function completionTree(program: Command): CompletionCommand[] {
  return walk(program, '');
}

function walk(command: Command, path: string): CompletionCommand[] {
  const completionCommand: CompletionCommand = {
    path,
    names: [command.name(), ...command.aliases()],
    description: command.summary() || command.description(),
    options: [
      ...command.options.filter(({ hidden }) => !hidden).map((option) => optionOf(option, path)),
      { flags: ['-h', '--help'], description: 'display help for command', values: null },
    ],
    arguments: command.registeredArguments.map((argument) => argumentOf(argument, path)),
  };
  const children = command.createHelp().visibleCommands(command);
  const below = children.filter((child) => command.commands.includes(child));
  return [
    completionCommand,
    ...below.flatMap((child) => walk(child, path === '' ? child.name() : `${path} ${child.name()}`)),
  ];
}

function optionOf(option: Option, path: string): CompletionOption {
  const name = /[<[]([^\]>.]+)/.exec(option.flags)?.[1];
  const { argChoices, description, long, short, variadic } = option;
  const known = argChoices ? { words: argChoices } : optionWords[`${path} ${long}`];
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    values: name === undefined ? null : valuesOf(name, known, fileOptions.has(long ?? ''), variadic),
  };
}

function argumentOf(argument: Argument, path: string) {
  const { argChoices, variadic } = argument;
  const known = argChoices ? { words: argChoices } : argumentWords[`${path} ${argument.name()}`];
  return { values: valuesOf(argument.name(), known, false, false), variadic };
}

/** Options that take a file or folder, whatever the placeholder of their value. */
const fileOptions = new Set(['--model', '--from-model', '--roofline']);

function valuesOf(name: string, known: ValueWords | undefined, isFile: boolean, many: boolean): Values {
  if (/^(selector|sessions?)$/.test(name)) return { kind: 'sessions' };
  if (name === 'command') return { kind: 'program' };
  if (known) return { kind: 'words', words: [...known.words], list: many || known.list === true };
  const file = isFile || /^(files?|paths?|folder|dir|model|cli|captures?|python)$/.test(name);
  return { kind: file ? 'files' : 'free' };
}
