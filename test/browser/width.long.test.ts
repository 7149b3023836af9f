import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { inferscope } from '../cli/run-cli.js';
import { UiPages } from './ui-pages.js';
import { fixture } from '../cli/capture-files.js';

const sessions = {
  ncu: ['ncu-2025.3.1-h200/ncu-kernels.raw.csv', 'ncu-2025.3.1-h200/ncu-kernels.details.csv'],
  load: ['benchmark-results-recorded/guidellm-sweep.json'],
  nsys: ['nsys-2025.3.1-h200/tiny-nsys.sqlite'],
  kineto: ['kineto-torch2.11-h200/kineto-tiny.json.gz', 'cublas-cuda13.0-h200/cublaslt.log'],
};
const viewports = { wide: { width: 1280, height: 800 }, phone: { width: 390, height: 800 } };

const ui = new UiPages((setup) => {
  for (const [name, files] of Object.entries(sessions))
    expect(inferscope(setup, ['import', ...files.map(fixture), '--name', name]).status).toBe(0);
  expect(inferscope(setup, ['session', 'import', fixture('vllm-tp2-h200/tp2.tgz')]).status).toBe(0);
});

/** Opens a page with the access token in a browser context of its own. */
async function open(viewport: { width: number; height: number }, path: string): Promise<Page> {
  const context = await ui.browser.newContext({ viewport });
  const page = await context.newPage();
  await page.goto(ui.server.url);
  await page.goto(`${ui.server.origin}${path}`);
  return page;
}

/** Captions of unfolded tables that are wider than their box; "page" if the whole page is wider than the window. */
const findTooWide = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const root = document.documentElement;
    const boxes = [...document.querySelectorAll('.scroll')].filter(
      (box) => box.scrollWidth > box.clientWidth + 1 && !box.closest('details'),
    );
    return [
      ...(root.scrollWidth > root.clientWidth ? ['page'] : []),
      ...boxes.map((box) => box.querySelector('caption')?.textContent ?? ''),
    ];
  })()`);

describe.each(Object.entries(viewports))('%s', (_, viewport) => {
  it.each(Object.keys(sessions))('no table of the report of %s scrolls sideways', async (name) => {
    const page = await open(viewport, ui.pathOf(name));
    await page.waitForSelector('table.stacks', { state: 'attached' });
    expect(await findTooWide(page)).toEqual([]);
    await page.context().close();
  });

  it('no page of ui scrolls sideways', async () => {
    const page = await open(viewport, '/');
    const sessionPages = ['timeline', 'kernels', 'operators', 'gemms', 'requests', 'memory', 'sql'];
    for (const path of ['/', ...sessionPages.map((name) => ui.pathOf('nsys', `/${name}`))]) {
      await page.goto(`${ui.server.origin}${path}`);
      expect(await findTooWide(page), path).not.toContain('page');
    }
    await page.context().close();
  });
});

it('a wide page breaks the words of a table before it shows the rows as lists', async () => {
  const page = await open(viewports.wide, ui.pathOf('tp2'));
  // The page of a session that is being read reloads itself.
  await page.waitForSelector('#kernels table.breaks', { timeout: 60_000 });
  expect(await page.locator('#kernels table.lists').count()).toBe(0);
  await page.context().close();
});

it('columns with details are shown on demand', async () => {
  const page = await open(viewports.wide, ui.pathOf('ncu'));
  const waves = page.locator('#counters th', { hasText: 'waves' });
  expect(await waves.isVisible()).toBe(false);
  await page.locator('#counters .all-columns input').check();
  expect(await waves.isVisible()).toBe(true);
  await page.context().close();
});
