import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { InferscopeError } from '../model/errors.js';
import { packageRoot } from '../model/installation.js';
import { definedCommands } from './test-commands.js';

const defined = await definedCommands();

test.each([...defined.keys()])('%s --help has two examples and fits 80 columns', (path) => {
  let text = '';
  const writeOut = (part: string) => (text += part);
  defined
    .get(path)!
    .configureOutput({ writeOut, getOutHelpWidth: () => 80 })
    .outputHelp();
  expect(text.match(/^ {2}\$ \S/gm)).toHaveLength(2);
  expect(Math.max(...text.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(80);
});

const numberOptions = [...defined].flatMap(([path, command]) =>
  command.options
    .filter(({ flags }) => /<(?:n|hz|seconds|rate|share|size|time|percent|pid)(?:\.\.\.)?>/.test(flags))
    .map((option) => ({ path, option })),
);

test('every option that takes a number names itself in the error for a word, which is a wrong option', () => {
  const wrong = numberOptions.flatMap(({ path, option }) => {
    try {
      return [`${path} ${option.long}: ${option.parseArg?.('abc', undefined) ?? 'no parser'}`];
    } catch (error) {
      const { code, message } = error as InferscopeError;
      return code === 'E_USAGE' && message.includes(option.long!) ? [] : [`${path}: ${code} ${message}`];
    }
  });
  expect(wrong).toEqual([]);
  expect(numberOptions.length).toBeGreaterThan(80);
});

/** Commands in a text, up to a quote, a pipe, a comment, or another program's arguments. */
function commandsIn(text: string): string[] {
  return text
    .split('\n')
    .flatMap((line) =>
      [...line.matchAll(/\binferscope ([a-z]+\b[^`'"|&>#;()…–]*)/g)].map(([, words]) => words!),
    )
    .map((words) => words.split(/ -- |, | – | or /)[0]!.trim());
}

test('every command named in messages, docs and README exists, with its flags', () => {
  const filesBelow = ['src', 'python', 'docs', 'bench', 'examples'].flatMap((folder) =>
    readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  );
  const files = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...filesBelow].filter(
    (file) =>
      /\.(tsx?|py|md|ya?ml)$/.test(file) && !file.includes('.test.') && !file.includes('node_modules'),
  );
  const wrong: string[] = [];
  let flags = 0;
  for (const file of files) {
    for (const typed of commandsIn(readFileSync(join(packageRoot(), file), 'utf8'))) {
      const [first = '', second = ''] = typed.split(/\s+/);
      const command = defined.get(`${first} ${second}`) ?? defined.get(first);
      // "inferscope reads", "inferscope writes": prose. `inferscope bench ${verb}`: any subcommand.
      if (!command || second.startsWith('${')) continue;
      for (const [flag] of typed.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)) {
        flags++;
        if (flag !== '--help' && !command.options.some(({ long }) => long === flag))
          wrong.push(`${file}: inferscope ${typed}: ${flag}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(flags).toBeGreaterThan(300);
});

test('every file of the repository that a page names exists', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    ...readdirSync(join(packageRoot(), 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', name)),
  ];
  const named = pages.flatMap((page) =>
    [
      ...readFileSync(join(packageRoot(), page), 'utf8').matchAll(
        /`((?:src|test|bench|python|schemas|examples)\/[\w./-]+\.[a-z]+)`/g,
      ),
    ].map(([, path]) => ({ page, path: path! })),
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ path }) => !existsSync(join(packageRoot(), path)))).toEqual([]);
});
