import { Command } from 'commander';
import { expect, test } from 'vitest';
import { commands } from './commands.js';
import { aliasRepeats } from './runs-option.js';

test('--repeats is a hidden alias of --runs with the same check', () => {
  const parsed = (...args: string[]): unknown => {
    const command = new Command('x').option('--runs <n>', 'timed repeats', Number, 3);
    aliasRepeats(command);
    expect(command.helpInformation()).not.toContain('--repeats');
    return command.parse(args, { from: 'user' }).opts();
  };
  expect(parsed()).toEqual({ runs: 3 });
  expect(parsed('--runs', '7')).toEqual({ runs: 7 });
  expect(parsed('--repeats', '7')).toMatchObject({ runs: 7 });
});

test('no command has a --repeats of its own', async () => {
  for (const { name, load } of commands) {
    const command = new Command(name);
    (await load()).define(command);
    for (const subcommand of [command, ...command.commands])
      expect(
        subcommand.options.map(({ long }) => long),
        subcommand.name(),
      ).not.toContain('--repeats');
  }
});
