import { Command } from 'commander';
import { expect, test } from 'vitest';
import { commands } from './commands.js';
import { completionTree } from './completion-tree.js';
import { argumentWords, optionWords } from './completion-values.js';

async function wholeProgram(): Promise<Command> {
  const program = new Command('inferscope').enablePositionalOptions();
  for (const { name, load } of commands) (await load()).define(program.command(name));
  return program;
}

const below = (program: Command, path: string) =>
  path
    .split(' ')
    .reduce((parent, name) => parent.commands.find((command) => command.name() === name)!, program);

test('completed values belong to existing options, and their parsers accept them', async () => {
  const program = await wholeProgram();
  for (const [key, { words }] of Object.entries(optionWords)) {
    const [, path, flag] = /^(.*) (--\S+)$/.exec(key)!;
    const option = below(program, path!).options.find(({ long }) => long === flag);
    expect(option, key).toBeDefined();
    // Commander offers `choices` itself.
    expect(option!.argChoices, key).toBeUndefined();
    for (const word of words)
      expect(() => option!.parseArg?.(word, option!.defaultValue), `${key} ${word}`).not.toThrow();
  }
  for (const key of Object.keys(argumentWords)) {
    const [path, name] = key.split(' ');
    expect(below(program, path!).registeredArguments.map((argument) => argument.name())).toContain(name);
  }
});

test('completion does not depend on help text', async () => {
  const tree = completionTree(await wholeProgram());
  const values = (path: string, flag: string) =>
    tree
      .find((completionCommand) => completionCommand.path === path)!
      .options.find(({ flags }) => flags.includes(flag))!.values;
  expect(values('memory', '--model-params')).toEqual({ kind: 'free' });
  expect(values('kernels', '--from-model')).toEqual({ kind: 'files' });
  expect(values('run', '--evaluator')).toEqual({
    kind: 'words',
    words: ['nsys', 'ncu', 'torch', 'none'],
    list: true,
  });
});
