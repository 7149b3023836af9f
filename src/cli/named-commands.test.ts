import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { packageRoot } from '../model/installation.js';
import { commands } from './commands.js';

/** Flags by command: `session show`. */
async function flagsOfCommands(): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const add = (path: string, command: Command) => {
    found.set(path, new Set(['--help', ...command.options.map(({ long }) => long ?? '')]));
    for (const child of command.commands) {
      for (const name of [child.name(), ...child.aliases()]) add(`${path} ${name}`, child);
    }
  };
  const program = new Command('inferscope').enablePositionalOptions();
  for (const { name, alias, load } of commands) {
    const command = program.command(name);
    (await load()).define(command);
    for (const word of alias ? [name, alias] : [name]) add(word, command);
  }
  return found;
}

/** What a message, a comment or a page tells to type: up to a quote, a pipe, a comment, or what another program gets. */
function typedIn(text: string): string[] {
  return text
    .split('\n')
    .flatMap((line) =>
      [...line.matchAll(/\binferscope ([a-z]+\b[^`'"|&>#;()…–]*)/g)].map(([, words]) => words!),
    )
    .map((words) => words.split(/ -- |, | – | or /)[0]!.trim());
}

test('every command that a message, a page of the docs or the README names exists, with its flags', async () => {
  const known = await flagsOfCommands();
  const below = ['src', 'python', 'docs', 'bench', 'examples'].flatMap((folder) =>
    readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  );
  const files = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...below].filter(
    (file) =>
      /\.(tsx?|py|md|ya?ml)$/.test(file) && !file.includes('.test.') && !file.includes('node_modules'),
  );
  const wrong: string[] = [];
  let flags = 0;
  for (const file of files) {
    for (const typed of typedIn(readFileSync(join(packageRoot(), file), 'utf8'))) {
      const [first = '', second = ''] = typed.split(/\s+/);
      const own = known.get(`${first} ${second}`) ?? known.get(first);
      // "inferscope reads", "inferscope writes": prose. `inferscope bench ${verb}`: any of its verbs.
      if (!own || second.startsWith('${')) continue;
      for (const [flag] of typed.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)) {
        flags++;
        if (!own.has(flag) && flag !== '--sessions') wrong.push(`${file}: inferscope ${typed}: ${flag}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(flags).toBeGreaterThan(300);
});
