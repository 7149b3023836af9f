import { expect } from 'vitest';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export const desktop = { width: 1440, height: 900 };
export const phone = { width: 375, height: 800 };

export interface OpenReport {
  page: Page;
  /** Console errors and warnings, uncaught exceptions. */
  complaints: string[];
  /** URLs that the page requested, except its own. */
  requests: string[];
}

/** Collects what a page writes to the console and requests. */
export function watch(page: Page, url: string): { complaints: string[]; requests: string[] } {
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    const isPage = request.url().split('#')[0] === url;
    if (!isPage && !/^(?:data|blob):/.test(request.url())) requests.push(request.url());
  });
  return { complaints, requests };
}

/** Opens the report at `path` and waits until its charts are drawn. */
export async function openReport(
  browser: Browser,
  path: string,
  options: BrowserContextOptions = {},
): Promise<OpenReport> {
  const page = await browser.newPage({ viewport: desktop, ...options });
  const url = pathToFileURL(path).href;
  const watched = watch(page, url);
  await page.goto(url);
  await waitForCharts(page);
  return { page, ...watched };
}

/** Waits until all charts of a page are drawn. */
export const waitForCharts = (page: Page) =>
  page.waitForSelector('html[data-charts=drawn]', { state: 'attached' });

/** Opens all folded parts of a page. */
export const unfold = (page: Page) =>
  page.$$eval('details', (all) => all.forEach((details) => details.setAttribute('open', '')));

/** Expects that a page does not scroll sideways. */
export async function expectFits(page: Page): Promise<void> {
  const [content, window] = await page.$eval('html', (html) => [html.scrollWidth, html.clientWidth]);
  expect(content).toBeLessThanOrEqual(window!);
}

/** For each chart its section and kind, the number of shapes in its SVG, and whether it stays inside its box. */
export const readCharts = (page: Page) =>
  page.$$eval('[data-chart]', (boxes) =>
    boxes.map((box) => {
      const outer = box.getBoundingClientRect();
      const inner = box.querySelector('svg')?.getBoundingClientRect();
      return {
        name: `${box.closest('section')?.id} ${box.getAttribute('data-chart')}`,
        shapes: box.querySelectorAll('svg path').length,
        texts: box.querySelectorAll('svg text').length,
        inside: inner ? inner.right <= outer.right + 1 && inner.bottom <= outer.bottom + 1 : false,
        width: inner?.width ?? 0,
      };
    }),
  );

/** The charts of a profile's report in order, without its waterfalls. */
const profileCharts = [
  'operators bars',
  'layers bars',
  'layers bars',
  'roofline roofline',
  'timeline timeline',
  'memory lines',
  'latency lines',
  'latency lines',
  'telemetry lines',
];

/** Checks that every chart of a profile's report is present, in order, and drawn with more than `shapes` shapes. */
export async function expectProfileCharts(page: Page, shapes: number): Promise<void> {
  const charts = await readCharts(page);
  const others = charts.filter(({ name }) => !name.startsWith('waterfall'));
  expect(others.map(({ name }) => name)).toEqual(profileCharts);
  for (const chart of charts) {
    expect(chart.shapes, chart.name).toBeGreaterThan(shapes);
    expect(chart.texts, chart.name).toBeGreaterThan(2);
    expect(chart.inside, chart.name).toBe(true);
  }
}
