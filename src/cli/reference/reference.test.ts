import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../model/installation.js';
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
  ...rulePages(),
];

// Stale after a change of the code: npm run docs.
test.each(pages)('docs/reference/$path is what the code says', async ({ path, text }) => {
  await expect(text).toMatchFileSnapshot(join(folder, path));
});

test('no page is left of a rule that is gone', () => {
  const generated = new Set(pages.map(({ path }) => path));
  const found = readdirSync(join(folder, 'rules')).map((name) => `rules/${name}`);
  expect(found.filter((path) => !generated.has(path))).toEqual([]);
});

test('nothing on a page is undefined, and every cell of a rule has words', () => {
  for (const { text } of pages) expect(text).not.toMatch(/undefined|\[object|:\*\* \./);
});
