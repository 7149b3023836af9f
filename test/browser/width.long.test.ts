import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { idOf, startUi, type UiServer } from './ui-server.js';

let setup: Place;
let server: UiServer;
let browser: Browser;

const fixture = (path: string): string => join(packageRoot(), 'test', 'fixtures', path);
const sessions = {
  ncu: ['ncu-2025.3.1-h200/ncu-kernels.raw.csv', 'ncu-2025.3.1-h200/ncu-kernels.details.csv'],
  load: ['benchmark-results-recorded/guidellm-sweep.json'],
  nsys: ['nsys-2025.3.1-h200/tiny-nsys.sqlite'],
  kineto: ['kineto-torch2.11-h200/kineto-tiny.json.gz', 'cublas-cuda13.0-h200/cublaslt.log'],
};
const viewports = { wide: { width: 1280, height: 800 }, phone: { width: 390, height: 800 } };

beforeAll(async () => {
  setup = place();
  for (const [name, files] of Object.entries(sessions))
    expect(inferscope(setup, ['import', ...files.map(fixture), '--name', name]).status).toBe(0);
  server = await startUi(setup);
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  server?.child.kill('SIGKILL');
});

/** Captions of unfolded tables that are wider than their box; "page" if the whole page is wider than the window. */
const tooWide = (page: Page): Promise<string[]> =>
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
    const context = await browser.newContext({ viewport });
    const page = await context.newPage();
    await page.goto(server.url);
    await page.goto(`${server.origin}/s/${idOf(setup, name)}`);
    await page.waitForSelector('table.stacks', { state: 'attached' });
    expect(await tooWide(page)).toEqual([]);
    await context.close();
  });

  it('no page of ui scrolls sideways', async () => {
    const context = await browser.newContext({ viewport });
    const page = await context.newPage();
    await page.goto(server.url);
    const id = idOf(setup, 'nsys');
    const sessionPages = ['timeline', 'kernels', 'operators', 'gemms', 'requests', 'memory', 'sql'];
    for (const path of ['/', ...sessionPages.map((pagePath) => `/s/${id}/${pagePath}`)]) {
      await page.goto(`${server.origin}${path}`);
      expect(await tooWide(page), path).not.toContain('page');
    }
    await context.close();
  });
});

it('columns with details are shown on demand', async () => {
  const context = await browser.newContext({ viewport: viewports.wide });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.goto(`${server.origin}/s/${idOf(setup, 'ncu')}`);
  const waves = page.locator('#counters th', { hasText: 'waves' });
  expect(await waves.isVisible()).toBe(false);
  await page.locator('#counters .all-columns input').check();
  expect(await waves.isVisible()).toBe(true);
  await context.close();
});
