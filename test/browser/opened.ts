import { expect } from 'vitest';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export const desktop = { width: 1440, height: 900 };
export const phone = { width: 375, height: 800 };

export interface Opened {
  page: Page;
  /** Console errors and warnings, uncaught exceptions. */
  complaints: string[];
  /** URLs that the page requested, except its own. */
  requests: string[];
}

/** Opens the report at `path` and waits until its charts are drawn. */
export async function open(
  browser: Browser,
  path: string,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const page = await browser.newPage({ viewport: desktop, ...options });
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  const url = pathToFileURL(path).href;
  page.on('request', (request) => {
    if (request.url() !== url && !request.url().startsWith('data:')) requests.push(request.url());
  });
  await page.goto(url);
  await page.waitForSelector('html[data-charts=drawn]', { state: 'attached' });
  return { page, complaints, requests };
}

/** For each chart its section and kind, the number of shapes in its SVG, and whether it stays inside its box. */
export const chartsDrawn = (page: Page) =>
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

/** Charts of a profile's report after its waterfalls, in order. */
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
  const drawn = await chartsDrawn(page);
  const otherDrawn = drawn.filter(({ name }) => !name.startsWith('waterfall'));
  expect(otherDrawn.map(({ name }) => name)).toEqual(profileCharts);
  for (const chart of drawn) {
    expect(chart.shapes, chart.name).toBeGreaterThan(shapes);
    expect(chart.texts, chart.name).toBeGreaterThan(2);
    expect(chart.inside, chart.name).toBe(true);
  }
}
