import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainSession } from '../../src/advice/explain/explain.js';
import { analyzeTrace } from '../../src/facts/trace/trace.js';
import { compareExplanations } from '../../src/advice/verify/verify.js';
import { document } from '../../src/model/document.js';
import { headlineTime } from '../../src/model/headline-time.js';
import { type ExplainResult, explainVersion, verifyVersion } from '../../src/model/documents/explain.js';
import { childEntry } from '../../src/model/installation.js';
import { pageOfView } from '../../src/render/html/view.js';
import { capturesView } from '../../src/views/captures.js';
import { verifyView } from '../../src/views/verify.js';
import { launchBrowser } from './chromium.js';
import { importGpuSession } from './gpu-session.js';
import { desktop, openReport, phone, unfold, expectFits } from './report-page.js';
import { testFolder } from '../../src/session/test-folder.js';

const folder = testFolder();
const path = join(folder, 'explained.html');
let browser: Browser;
let result: ExplainResult;

beforeAll(async () => {
  const session = await importGpuSession(folder, [
    { importer: 'nsys-sqlite', path: 'test/fixtures/nsys-2025.3.1-h200/tiny-nsys.sqlite' },
  ]);
  const explain = await explainSession(session);
  result = explain.data;
  const view = capturesView({
    session: session.manifest,
    trace: await analyzeTrace(session),
    counters: null,
    gemms: null,
  });
  const clientScript = readFileSync(childEntry('report-client'), 'utf8');
  writeFileSync(path, pageOfView(view, { clientScript, explain }));
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

describe('a report of a GPU session in Chromium', () => {
  it('starts with waterfall and findings, and draws all charts without errors', async () => {
    const { page, complaints, requests } = await openReport(browser, path);
    const ids = await page.$$eval('section', (all) => all.map(({ id }) => id));
    expect(ids.slice(0, 4)).toEqual(['waterfall', 'findings', 'overview', 'phases']);
    const header = await page.locator('#summary').innerText();
    const time = headlineTime(result.stages.find(({ kind }) => kind === 'decode')!).value!;
    // The interval of the time supports two digits.
    expect(header).toContain(`${Number(time.toPrecision(2))}\u00a0ms, profiled`);
    const boxes = page.locator('[data-chart=waterfall]');
    // Only two waterfalls are drawn; those of other stages are folded tables.
    const drawn = Math.min(2, result.stages.length);
    expect(await boxes.count()).toBe(drawn);
    for (let i = 0; i < drawn; i++) {
      // At least one path per bar, including the measured time.
      expect(await boxes.nth(i).locator('svg path').count()).toBeGreaterThan(4);
    }
    expect(await page.locator('#phases [data-chart] svg path').count()).toBeGreaterThan(5);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    await page.close();
  });

  it('opening a finding shows its change and evidence', async () => {
    const { page } = await openReport(browser, path);
    const first = page.locator('.findings > li').first();
    expect((await first.innerText()).replaceAll('\u00a0', ' ')).toContain(result.findings[0]!.title);
    const change = first.locator('details').getByText(result.findings[0]!.change.text.slice(0, 40));
    // A closed finding shows its change and expected gain in brief.
    const brief = first.locator('.brief');
    expect([await change.isVisible(), await brief.isVisible()]).toEqual([false, true]);
    // Printed pages show the details, because nothing can be opened there.
    await page.emulateMedia({ media: 'print' });
    await page.waitForSelector('html.printing', { state: 'attached' });
    expect(await change.isVisible()).toBe(true);
    await page.emulateMedia({ media: 'screen' });
    await page.waitForSelector('html:not(.printing)', { state: 'attached' });
    expect(await change.isVisible()).toBe(false);
    await first.locator('summary').first().click();
    expect([await change.isVisible(), await brief.isVisible()]).toEqual([true, false]);
    await page.close();
  });

  it('a page of --verify draws the expected next to the achieved gain, within the width of a phone', async () => {
    const after = { ...result, findings: [], session: { ...result.session, id: 'after', name: null } };
    const verify = document(
      'verify',
      verifyVersion,
      compareExplanations(result, after, { before: 1, after: 1 }),
    );
    const clientScript = readFileSync(childEntry('report-client'), 'utf8');
    const explain = document('explain', explainVersion, result);
    const verifyPath = join(folder, 'verified.html');
    writeFileSync(verifyPath, pageOfView(verifyView(verify, explain), { clientScript }));
    const { page, complaints, requests } = await openReport(browser, verifyPath, { viewport: phone });
    const gain = await page.locator('#verify svg.gain').first().boundingBox();
    expect(gain!.x + gain!.width).toBeLessThanOrEqual(phone.width);
    expect(await page.locator('[data-chart=waterfall] svg').count()).toBeGreaterThan(0);
    await expectFits(page);
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: queries and tables do not make the page scroll sideways', async (_, viewport) => {
    const { page } = await openReport(browser, path, { viewport });
    await unfold(page);
    await expectFits(page);
    await page.close();
  });
});
