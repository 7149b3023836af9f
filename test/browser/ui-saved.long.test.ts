import { statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { waitForCharts, watch } from './report-page.js';
import { importArchive, UiPages } from './ui-pages.js';
import { waitForTimeline } from './ui-server.js';
import type { Counter } from '../../src/ui/timeline/shown.js';

const ui = new UiPages((setup) => {
  for (const name of ['launch_bound_decode-fault', 'launch_bound_decode-fixed'])
    importArchive(setup, `diagnosis/${name}.tgz`);
  importArchive(setup, 'monitor-0.1-h200/session.tar.gz', 'watched');
});
const name = 'launch_bound_decode-fault';

/** Saves the open page as a file and opens it, without the server's cookie. */
async function saveAndOpen(page: Page) {
  const downloading = page.waitForEvent('download', { timeout: 60_000 });
  await page.click('#save');
  const path = join(ui.setup.scratch, `saved-${Math.random()}.html`);
  await (await downloading).saveAs(path);
  expect(statSync(path).size).toBeLessThan(5_000_000);
  const saved = await (await ui.browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  const url = pathToFileURL(path).href;
  const watched = watch(saved, url);
  await saved.goto(url);
  return { saved, ...watched };
}

it('saves a timeline with its range, event and collapsed groups as a file', async () => {
  const page = await ui.open(ui.pathOf(name, '/timeline'));
  await waitForTimeline(page);
  await page.selectOption('#step', '1');
  await page.focus('#search');
  await page.keyboard.type('elementwise');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#event dl');
  await expect.poll(() => new URL(page.url()).searchParams.has('event')).toBe(true);
  const state = new URL(page.url()).searchParams;
  const { saved, complaints, requests } = await saveAndOpen(page);
  await waitForTimeline(saved);
  await expect
    .poll(() => new URLSearchParams(new URL(saved.url()).hash.replace('#timeline', '')).get('end'))
    .toBe(state.get('end'));
  const savedState = new URLSearchParams(new URL(saved.url()).hash.replace('#timeline', ''));
  for (const key of ['start', 'end', 'step']) expect(savedState.get(key), key).toBe(state.get(key));
  await saved.waitForSelector('#event dl');
  // The links lead to other places: pages of the server, sections of the file.
  expect(await saved.innerText('#event dl')).toBe(await page.innerText('#event dl'));
  await waitForCharts(saved);
  const top = (): Promise<number> =>
    saved.locator('#whole-timeline').evaluate((section) => section.getBoundingClientRect().top);
  await expect.poll(top).toBeLessThan(300);
  expect([complaints, requests]).toEqual([[], []]);
  await saved.context().close();
  await page.close();
});

it('saves an overview with its what-if changes as a file', async () => {
  const page = await ui.open(ui.pathOf(name));
  await waitForCharts(page);
  for (const change of ['cudagraph', 'batch-size=8']) {
    await page.click(`#switches a:text-is("${change}")`);
    await page.waitForSelector(`#switches a[aria-current]:text-is("${change}")`);
  }
  const textOf = async (opened: Page): Promise<string> =>
    (await opened.innerText('#waterfall h3 >> nth=0')).replace(/\s+/g, ' ');
  const { saved, complaints, requests } = await saveAndOpen(page);
  await saved.waitForSelector('#switches a[aria-current]:text-is("batch-size=8")');
  expect(await textOf(saved)).toBe(await textOf(page));
  expect([complaints, requests]).toEqual([[], []]);
  await saved.context().close();
  await page.close();
});

it('saves tables, charts and comparisons as they are, without links to the server', async () => {
  const ids = [name, 'launch_bound_decode-fixed'].map((session) => `s=${ui.idOf(session)}`);
  for (const path of [
    `${ui.pathOf(name, '/kernels')}?q=nvjet`,
    ui.pathOf('watched', '/memory'),
    `/compare?${ids.join('&')}`,
  ]) {
    const page = await ui.open(path);
    if (!path.includes('/kernels')) await waitForCharts(page);
    const count = (opened: Page): Promise<number[]> =>
      Promise.all(['main tbody tr', '[data-chart] svg path'].map((part) => opened.locator(part).count()));
    const { saved, complaints, requests } = await saveAndOpen(page);
    expect(await count(saved), path).toEqual(await count(page));
    expect(await saved.locator('a[href^="/"], a[href^="?"], script, nav.pages').count(), path).toBe(0);
    expect([complaints, requests], path).toEqual([[], []]);
    await saved.context().close();
    await page.close();
  }
});

it('leads from an event back to its bar and finding, and from there to the timeline', async () => {
  const page = await ui.open(ui.pathOf(name));
  await page.click('#findings .place a[href*="/timeline?"]');
  await waitForTimeline(page);
  await page.click('#selected tbody button >> nth=0');
  await page.waitForSelector('#event a[href*="#finding-"]');
  expect(await page.innerText('#event')).toMatch(/: [\d.]+\sms per decode step, \d+\s%\n/);
  expect(await page.locator('#event a[href$="#waterfall"]').count()).toBeGreaterThan(0);
  await page.click('#event a[href*="#finding-"]');
  await waitForCharts(page);
  const id = new URL(page.url()).hash;
  expect(await page.innerText(id)).toContain('Launch-bound');
  expect(await page.locator(`${id} .place a[href*="/timeline?"]`).count()).toBe(1);
  await page.close();
});

it('shows every sampled series: curves, constants as a line of text, CPU cores as their maximum', async () => {
  const page = await ui.open(ui.pathOf('watched', '/timeline'));
  await waitForTimeline(page);
  const execution = new URL(page.url()).searchParams.get('execution')!;
  const counters = await page.evaluate<Counter[]>(
    `fetch(document.body.dataset.api + '/counters?execution=${execution}').then((answer) => answer.json())`,
  );
  const [[series]] = ui.sql(
    'watched',
    `SELECT count(DISTINCT (host, if(regexp_full_match(scope, 'cpu\\d+'), 'cores', scope), metric)) FROM telemetry
     WHERE execution_id = '${execution}' AND value IS NOT NULL`,
  ) as [[number]];
  expect(counters).toHaveLength(series);
  const constants = counters.filter(({ values }) => new Set(values).size === 1).length;
  expect(constants).toBeGreaterThan(3);
  // 36 px per curve and 14 px per constant, below an axis and a head.
  expect(await page.$eval('#timeline canvas', (canvas) => canvas.clientHeight)).toBeGreaterThanOrEqual(
    42 + 36 * (series - constants) + 14 * constants,
  );
  // Rows are drawn when they are scrolled into view: the last curve is above the constants.
  const blueInLastCurve = (): Promise<boolean> =>
    page.evaluate(`(() => {
      const canvas = document.querySelector('#timeline canvas');
      const top = canvas.height - 4 - ${14 * constants} - 36;
      const { data } = canvas.getContext('2d').getImageData(170, top, canvas.width - 170, 30);
      return data.some((_, i) => i % 4 === 0 && data[i + 2] - data[i] > 60);
    })()`);
  await page.setViewportSize({ width: 1280, height: 400 });
  await expect.poll(blueInLastCurve).toBe(false);
  await page.$eval('#timeline', (box) => box.scrollTo(0, box.scrollHeight));
  await expect.poll(blueInLastCurve).toBe(true);
  await page.close();
});

it('sends a tile or script that the browser has as 304, without its bytes', async () => {
  const page = await ui.open(ui.pathOf(name, '/timeline'));
  await waitForTimeline(page);
  await page.waitForLoadState('networkidle');
  const client = await page.context().newCDPSession(page);
  const urls = new Map<string, string>();
  const statuses: [url: string, status: number][] = [];
  client.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
  client.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) =>
    statuses.push([urls.get(requestId) ?? '', statusCode]),
  );
  await client.send('Network.enable');
  await page.reload();
  await waitForTimeline(page);
  const repeated = () => statuses.filter(([url]) => /\/api\/tiles|\/assets\/ui-timeline/.test(url));
  await expect.poll(() => repeated().length).toBeGreaterThan(1);
  const again = repeated();
  expect(again.map(([, status]) => status)).toEqual(again.map(() => 304));
  await page.close();
});

// The browser complains about the canvas that a test reads.
afterAll(() =>
  expect(ui.complaints.filter((complaint) => !complaint.includes('willReadFrequently'))).toEqual([]),
);
