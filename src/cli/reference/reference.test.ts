import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../model/installation.js';
import { issueCodes } from '../../model/issue-codes.js';
import { reasonCodes } from '../../model/reason-codes.js';
import { codesPage } from './codes.js';
import { commandsPage } from './commands.js';
import { documentsPage } from './documents.js';
import { errorsPage } from './errors.js';
import type { Page } from './markdown.js';
import { metricsPage } from './metrics.js';
import { rulePages } from './rules.js';
import { tablesPage } from './tables.js';

const folder = join(packageRoot(), 'docs/reference');
const pages: Page[] = [
  await commandsPage(),
  tablesPage(),
  documentsPage(),
  metricsPage(),
  errorsPage(),
  codesPage(),
  ...rulePages(),
];

// Fails after a change of the code until npm run docs.
test.each(pages)('docs/reference/$path is up to date', async ({ path, text }) => {
  await expect(text).toMatchFileSnapshot(join(folder, path));
});

test('no page of a removed rule is left', () => {
  const generated = new Set(pages.map(({ path }) => path));
  const found = readdirSync(join(folder, 'rules')).map((name) => `rules/${name}`);
  expect(found.filter((path) => !generated.has(path))).toEqual([]);
});

test('no reference page prints undefined, and every field of a rule has text', () => {
  for (const { text } of pages) expect(text).not.toMatch(/undefined|\[object|:\*\* \./);
});

test('every code of an issue or reason is used in the code', () => {
  const src = join(packageRoot(), 'src');
  const texts = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\.test\.ts$|test-[^/]*\.ts$|-codes\.ts$/.test(name))
    .map((name) => readFileSync(join(src, name), 'utf8'))
    .join('\n');
  const codes = [...Object.keys(issueCodes), ...Object.keys(reasonCodes)];
  expect(codes.filter((code) => !texts.includes(`'${code}'`))).toEqual([]);
});

/** The anchor that GitHub makes of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

function anchorsOf(file: string): Set<string> {
  const found = new Set<string>();
  for (const [, heading = ''] of readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)) {
    const anchor = anchorOf(heading.trim());
    // A repeated heading gets a number.
    let name = anchor;
    for (let n = 1; found.has(name); n++) name = `${anchor}-${n}`;
    found.add(name);
  }
  return found;
}

test('every link between our pages leads to an existing file and heading', () => {
  const below = readdirSync(join(packageRoot(), 'docs'), { recursive: true, encoding: 'utf8' });
  const files = ['README.md', 'CONTRIBUTING.md', ...below.map((name) => join('docs', name))];
  const links = files
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => {
      const file = join(packageRoot(), name);
      return [
        ...readFileSync(file, 'utf8').matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g),
      ].map(([, path = '', anchor]) => ({
        name,
        anchor,
        to: path === '' ? file : join(dirname(file), path),
      }));
    });
  const broken = links.filter(
    ({ to, anchor }) =>
      !existsSync(to) || (anchor !== undefined && to.endsWith('.md') && !anchorsOf(to).has(anchor)),
  );
  expect(broken).toEqual([]);
  expect(links.length).toBeGreaterThan(100);
});

test('docs/verified.md has a row for every requirement, and cells of at most 200 characters', () => {
  const rows = readFileSync(join(packageRoot(), 'docs/verified.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const ids = new Set(rows.flatMap(([id = '']) => id.split(', ')));
  const last = { A: 10, B: 12, C: 5, D: 8, E: 10, F: 10 };
  const expected = Object.entries(last).flatMap(([part, count]) =>
    Array.from({ length: count }, (_, index) => `${part}${index + 1}`),
  );
  expect(expected.filter((id) => !ids.has(id))).toEqual([]);
  expect(rows.filter((cells) => cells.length !== 7)).toEqual([]);
  expect(rows.flat().filter((cell) => cell.length > 200)).toEqual([]);
});
