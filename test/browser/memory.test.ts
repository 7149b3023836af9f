import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document } from '../../src/model/document.js';
import { childEntry } from '../../src/model/installation.js';
import { pageOfView } from '../../src/render/html/view.js';
import { testMemory } from '../../src/views/test-memory.js';
import { testSweep } from '../../src/views/test-sweep.js';
import { testFolder } from '../../src/session/test-folder.js';
import { memoryView } from '../../src/views/memory.js';
import { sweepView } from '../../src/views/sweep.js';
import { launchBrowser } from './chromium.js';
import { readCharts, openReport, phone, expectFits } from './report-page.js';

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

const folder = testFolder();
const renderOptions = () => ({ clientScript: readFileSync(childEntry('report-client'), 'utf8') });

test.each([
  ['memory', () => pageOfView(memoryView(testMemory()), renderOptions()), 7],
  ['sweep', () => pageOfView(sweepView(document('sweep', '1.0', testSweep())), renderOptions()), 3],
])('the %s page draws all charts, requests nothing and fits a phone', async (name, render, charts) => {
  const path = join(folder, `${name}.html`);
  writeFileSync(path, render());
  const { page, complaints, requests } = await openReport(browser, path);
  const drawnCharts = await readCharts(page);
  expect(drawnCharts).toHaveLength(charts);
  for (const chart of drawnCharts) {
    expect(chart, chart.name).toMatchObject({ inside: true });
    expect(chart.shapes + chart.texts, chart.name).toBeGreaterThan(4);
  }
  const onPhone = await openReport(browser, path, { viewport: phone });
  await expectFits(onPhone.page);
  await onPhone.page.close();
  expect([complaints, requests]).toEqual([[], []]);
  expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
  await page.close();
});
