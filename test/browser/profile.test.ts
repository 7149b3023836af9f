import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { profileDocumentSchema, type ProfileResult } from '../../src/model/documents/profile.js';
import { formatFigure, keepUnits } from '../../src/vocabulary/format.js';
import { launchBrowser } from './chromium.js';
import {
  expectProfileCharts,
  readCharts,
  desktop,
  openReport,
  phone,
  unfold,
  expectFits,
} from './report-page.js';
import { testFolder } from '../../src/session/test-folder.js';
import { cli } from '../cli/run-cli.js';

const folder = testFolder();
const report = join(folder, 'report.html');
let browser: Browser;
let result: ProfileResult;

// The built binary measures a profile and writes its report; report.test.ts has pages of test data.
beforeAll(async () => {
  const size = ['--launches', '1', '--repeats', '2', '--input-len', '32', '--output-len', '4'];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [cli, 'profile', ...size, '--json', '--quiet', '--output', report],
    {
      encoding: 'utf8',
      cwd: folder,
      maxBuffer: 64 * 2 ** 20,
      env: { ...process.env, INFERSCOPE_HOME: join(folder, 'home') },
    },
  );
  expect(status, stderr).toBe(0);
  result = profileDocumentSchema.parse(JSON.parse(stdout)).data;
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
});

describe('the report that `inferscope profile` writes', () => {
  it('draws every chart without errors, loads nothing, and is under 3 MB', async () => {
    const { page, complaints, requests } = await openReport(browser, report);
    await expectProfileCharts(page, 3);
    expect(await page.locator('[data-chart=timeline] svg path').count()).toBeGreaterThan(
      result.timeline!.events.length,
    );
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    expect(statSync(report).size).toBeLessThan(3e6);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: the page does not scroll sideways, opened tables included', async (_, viewport) => {
    const { page } = await openReport(browser, report, { viewport });
    await unfold(page);
    await expectFits(page);
    for (const chart of await readCharts(page)) expect(chart.inside, chart.name).toBe(true);
    await page.close();
  });

  it('shows headline figures, waterfall and the first finding on the first screen', async () => {
    const { page } = await openReport(browser, report, { viewport: { width: 1280, height: 800 } });
    const topOf = async (selector: string): Promise<number> =>
      (await page.locator(selector).first().boundingBox())!.y;
    expect(await topOf('.cards')).toBeLessThan(400);
    // Two lines more on a busy machine.
    expect(await topOf('[data-chart=waterfall]')).toBeLessThan(650);
    expect(await topOf('#findings li, #findings p')).toBeLessThan(700);
    await page.close();
  });

  it('shows the figures of the JSON document', async () => {
    const { page } = await openReport(browser, report);
    const summary = await page.locator('#summary').innerText();
    const { latency, memory, stages } = result;
    const headline = [latency.ttft_ms, latency.tpot_ms, latency.e2e_ms, memory!.peak_bytes];
    for (const figure of headline) expect(summary).toContain(keepUnits(formatFigure(figure)));
    const table = await page.locator('#stages').innerText();
    for (const stage of stages.slice(0, 2))
      expect(table).toContain(keepUnits(formatFigure(stage.roofline_ms)));
    const labels = await page.locator('[data-chart=waterfall] svg text').allTextContents();
    expect(labels).toContain('measured');
    expect(readFileSync(report, 'utf8')).not.toContain(folder);
    await page.close();
  });
});
