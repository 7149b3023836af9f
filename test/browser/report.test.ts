import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Document } from '../../src/model/document.js';
import type { ProfileResult } from '../../src/model/documents/profile.js';
import { childEntry } from '../../src/model/installation.js';
import { pageOfView } from '../../src/render/html/view.js';
import { testExplain } from '../../src/views/test-explain.js';
import { profileView } from '../../src/views/profile.js';
import { safeText } from '../../src/render/safe-text.js';
import { bareProfile, hostileProfile, hostileText, testProfile } from '../../src/views/test-profile.js';
import { launchBrowser } from './chromium.js';
import {
  expectProfileCharts,
  readCharts,
  desktop,
  openReport,
  phone,
  waitForCharts,
  unfold,
  expectFits,
} from './report-page.js';
import { testFolder } from '../../src/session/test-folder.js';

let browser: Browser;
const folder = testFolder();

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

const clientScript = readFileSync(childEntry('report-client'), 'utf8');

function writeReport(name: string, document: Document<ProfileResult>): string {
  const path = join(folder, `${name}.html`);
  writeFileSync(path, pageOfView(profileView(document), { clientScript, explain: testExplain() }));
  return path;
}

const fullReport = writeReport('full', testProfile());

describe('the report in Chromium', () => {
  it('draws every chart without errors, loads nothing, and is under 3 MB', async () => {
    const { page, complaints, requests } = await openReport(browser, fullReport);
    await expectProfileCharts(page, 5);
    // 8 layers × 13 operators and 4 outside the layers, 5 stages; each operator has its own shape.
    const spans = await page.locator('[data-chart=timeline] svg path').count();
    expect(spans).toBeGreaterThan(5 * (8 * 13 + 4));
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    expect(readFileSync(fullReport).byteLength).toBeLessThan(3e6);
    await page.close();
  });

  it('its content security policy blocks requests and injected scripts', async () => {
    const { page, requests } = await openReport(browser, fullReport);
    const outcome = await page.evaluate<unknown>(`(async () => {
      const fetched = await fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused');
      const script = document.createElement('script');
      script.textContent = 'globalThis.injected = true';
      document.body.append(script);
      return [fetched, 'injected' in globalThis];
    })()`);
    expect(outcome).toEqual(['refused', false]);
    expect(requests).toEqual([]);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: the page does not scroll sideways and no chart leaves its box', async (_, viewport) => {
    const { page } = await openReport(browser, fullReport, { viewport });
    // The page must not become wider when tables are opened.
    await unfold(page);
    await expectFits(page);
    for (const chart of await readCharts(page)) expect(chart.inside, chart.name).toBe(true);
    await page.close();
  });

  it('draws the charts near the window first, and all charts for printing', async () => {
    const page = await browser.newPage({ viewport: phone });
    // Without idle time only the charts near the window are drawn.
    await page.addInitScript('globalThis.requestIdleCallback = () => 0');
    await page.goto(pathToFileURL(fullReport).href);
    const areDrawn = async () => (await readCharts(page)).map(({ shapes }) => shapes > 0);
    await expect.poll(async () => (await areDrawn())[0]).toBe(true);
    expect((await areDrawn()).at(-1)).toBe(false);
    await page.locator('[data-chart]').last().scrollIntoViewIfNeeded();
    await expect.poll(async () => (await areDrawn()).at(-1)).toBe(true);
    await page.emulateMedia({ media: 'print' });
    await expect.poll(async () => (await areDrawn()).every(Boolean)).toBe(true);
    await page.close();
  });

  it('charts resize with the window', async () => {
    const { page } = await openReport(browser, fullReport);
    const [before] = await readCharts(page);
    await page.setViewportSize(phone);
    await expect.poll(async () => (await readCharts(page))[0]?.width).toBeLessThan(before?.width ?? 0);
    await waitForCharts(page);
    for (const chart of await readCharts(page)) expect(chart.inside, chart.name).toBe(true);
    await page.close();
  });

  /** Text color of the waterfall's first axis label, which depends on the theme. */
  const inkOf = (page: Page) => page.locator('[data-chart=waterfall] svg text').first().getAttribute('fill');
  const backgroundOf = (page: Page) =>
    page.evaluate<string>('getComputedStyle(document.body).backgroundColor');

  it('is dark if the reader prefers dark, including charts, and follows a change', async () => {
    const { page, complaints } = await openReport(browser, fullReport, { colorScheme: 'dark' });
    expect(await backgroundOf(page)).toBe('rgb(15, 18, 23)');
    expect(await inkOf(page)).toBe('#e4e8ef');
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(() => inkOf(page)).toBe('#1c2330');
    expect(await backgroundOf(page)).toBe('rgb(246, 247, 249)');
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('prints light, without navigation, with charts within the paper, in any color scheme', async () => {
    const { page } = await openReport(browser, fullReport, { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.waitForSelector('html.printing', { state: 'attached' });
    expect(await backgroundOf(page)).toBe('rgb(255, 255, 255)');
    expect(await inkOf(page)).toBe('#1c2330');
    expect(await page.locator('nav.contents').isVisible()).toBe(false);
    // A4 without two margins of 14 mm is 688 CSS pixels wide.
    for (const chart of await readCharts(page)) {
      expect(chart.inside, chart.name).toBe(true);
      expect(chart.width, chart.name).toBeLessThanOrEqual(688);
    }
    const pdf = await page.pdf({ preferCSSPageSize: true });
    expect(pdf.byteLength).toBeGreaterThan(50_000);
    await page.emulateMedia({ media: 'screen' });
    await page.waitForSelector('html:not(.printing)', { state: 'attached' });
    await page.close();
  });

  it('can be used by keyboard: skip link, contents, zoom of the timeline', async () => {
    const { page } = await openReport(browser, fullReport);
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent.trim()')).toBe(
      'Skip to the report',
    );
    await page.locator('nav.contents a[href="#memory"]').focus();
    await page.keyboard.press('Enter');
    await expect
      .poll(async () => (await page.locator('#memory').boundingBox())?.y)
      .toBeLessThan(desktop.height / 2);
    expect(new URL(page.url()).hash).toBe('#memory');
    await page.waitForSelector('nav.contents a[href="#memory"][aria-current]');

    const timeline = page.locator('[data-chart=timeline]');
    const labels = () => timeline.locator('svg text').allTextContents();
    const unzoomed = await labels();
    await timeline.focus();
    for (const key of ['+', '+', '+', '+', 'ArrowRight']) await page.keyboard.press(key);
    await expect.poll(labels).not.toEqual(unzoomed);
    await page.keyboard.press('0');
    await expect.poll(labels).toEqual(unzoomed);
    await page.close();
  });

  it('has a label on every chart, and a table that opens below it', async () => {
    const { page } = await openReport(browser, fullReport);
    const figures = page.locator('figure');
    const count = await figures.count();
    expect(count).toBe(10);
    for (let index = 0; index < count; index++) {
      const figure = figures.nth(index);
      expect((await figure.locator('[role=img]').getAttribute('aria-label'))?.length).toBeGreaterThan(10);
      expect(await figure.locator('table').first().isVisible()).toBe(false);
      await figure.locator('summary').first().press('Enter');
      expect(await figure.locator('table').first().isVisible()).toBe(true);
      expect(await figure.locator('tbody tr').count()).toBeGreaterThan(1);
    }
    await page.close();
  });

  it('hostile names stay text in the page, in charts and in tooltips', async () => {
    const { page, complaints } = await openReport(browser, writeReport('hostile', hostileProfile()));
    for (const name of ['timeline', 'memory', 'telemetry', 'roofline']) {
      const box = page.locator(`#${name} [data-chart]`).first();
      await box.scrollIntoViewIfNeeded();
      await box.hover({ position: { x: 300, y: 60 } });
      await page.waitForTimeout(60);
    }
    // The lane of operators now shows a tooltip with the hostile name.
    await page.locator('[data-chart=timeline]').hover({ position: { x: 300, y: 47 } });
    await expect.poll(() => page.locator('[data-chart=timeline]').innerText()).toContain('onerror');
    expect(await page.evaluate(() => 'pwned' in globalThis)).toBe(false);
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.locator('h1').textContent()).toContain(safeText(hostileText));
    expect(complaints).toEqual([]);
    await expectFits(page);
    await page.close();
  });

  it('the report of a session with only latencies says what is missing, also at phone width', async () => {
    const { page, complaints } = await openReport(browser, writeReport('latencies-only', bareProfile()), {
      viewport: phone,
    });
    const drawn = await readCharts(page);
    expect(drawn.map(({ name }) => name).slice(-2)).toEqual(['latency lines', 'latency lines']);
    expect(await page.locator('#memory').innerText()).toContain('Memory was not sampled.');
    expect(await page.locator('#summary').innerText()).toContain('The operator trace was cut off');
    await expectFits(page);
    expect(complaints).toEqual([]);
    await page.close();
  });
});
