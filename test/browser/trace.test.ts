import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyzeCounters } from '../../src/facts/counters/counters.js';
import { analyzeGemms } from '../../src/facts/gemms/gemms.js';
import { analyzeTrace } from '../../src/facts/trace/trace.js';
import { childEntry } from '../../src/model/installation.js';
import { pageOfView } from '../../src/render/html/view.js';
import type { CapturesResult } from '../../src/model/documents/by-kind.js';
import { capturesView } from '../../src/views/captures.js';
import { hostileText } from '../../src/views/test-profile.js';
import { launchBrowser } from './chromium.js';
import { importGpuSession } from './gpu-session.js';
import { desktop, openReport, phone, unfold, expectFits } from './report-page.js';
import { testFolder } from '../../src/session/test-folder.js';

const folder = testFolder();
const clientScript = readFileSync(childEntry('report-client'), 'utf8');
let browser: Browser;
let result: CapturesResult;
let fullReport: string;

function writeReport(name: string, data: CapturesResult): string {
  const path = join(folder, `${name}.html`);
  writeFileSync(path, pageOfView(capturesView(data), { clientScript }));
  return path;
}

// A capture of a decode loop on an H200 with loading and warm-up, an Nsight Compute page and a cuBLASLt log.
beforeAll(async () => {
  const session = await importGpuSession(folder, [
    { importer: 'nsys-sqlite', path: 'test/fixtures/nsys-2025.3.1-h200/tiny-whole.sqlite' },
    { importer: 'ncu-csv', path: 'test/fixtures/ncu-2025.3.1-h200/ncu-tiny.raw.csv' },
    { importer: 'cublaslt-log', path: 'test/fixtures/cublas-cuda13.0-h200/cublaslt-tiny-llm.log' },
  ]);
  result = {
    session: { ...session.manifest },
    trace: await analyzeTrace(session),
    utilization: null,
    counters: await analyzeCounters(session),
    gemms: await analyzeGemms(session),
    collectives: null,
  };
  fullReport = writeReport('full', result);
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

describe('the report of a GPU session in Chromium', () => {
  it('draws every chart without errors, loads nothing, and is under 5 MB', async () => {
    const { page, complaints, requests } = await openReport(browser, fullReport);
    const names = await page.$$eval('[data-chart]', (boxes) =>
      boxes.map((box) => box.getAttribute('data-chart')),
    );
    expect(names).toEqual(['bars', 'timeline', 'lines', 'bars']);
    for (const name of [
      '#phases [data-chart=bars]',
      '#timeline [data-chart=lines]',
      '#classes [data-chart=bars]',
    ]) {
      expect(await page.locator(`${name} svg path`).count(), name).toBeGreaterThan(5);
    }
    expect(await page.locator('figure details table').count()).toBeGreaterThanOrEqual(names.length);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    expect(readFileSync(fullReport).byteLength).toBeLessThan(5e6);
    await page.close();
  });

  /** Counts the pixels of the timeline by color (#rrggbb). ECharts draws many marks on a separate canvas. */
  const countPixels = (page: Awaited<ReturnType<typeof openReport>>['page']) =>
    page.evaluate<Record<string, number>>(`(() => {
      const counts = {};
      for (const canvas of document.querySelectorAll('[data-chart=timeline] canvas')) {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < data.length; i += 4) {
          if (data[i + 3] < 255) continue;
          const key = '#' + [0, 1, 2].map((j) => data[i + j].toString(16).padStart(2, '0')).join('');
          counts[key] = (counts[key] ?? 0) + 1;
        }
      }
      return counts;
    })()`);

  it('the timeline shows classes in their colors, and + and 0 zoom it', async () => {
    const { page } = await openReport(browser, fullReport);
    // Many marks are drawn over several frames, so the picture is complete when two readings are equal.
    let before: Record<string, number> = {};
    const isComplete = async () => {
      const last = JSON.stringify(before);
      before = await countPixels(page);
      return JSON.stringify(before) === last;
    };
    await expect.poll(isComplete, { timeout: 10_000, interval: 200 }).toBe(true);
    // Stages of both phases and idle time by cause; kernels are narrower than a pixel here.
    for (const color of ['#3b4252', '#7b8496', '#7f2704']) {
      expect(before[color] ?? 0, color).toBeGreaterThan(20);
    }
    await page.locator('[data-chart=timeline]').focus();
    for (let i = 0; i < 6; i++) await page.keyboard.press('+');
    // Colors of GEMM and elementwise kernels.
    for (const color of ['#0072b2', '#cc79a7']) {
      await expect.poll(async () => (await countPixels(page))[color] ?? 0).toBeGreaterThan(20);
    }
    await page.keyboard.press('0');
    await expect.poll(() => countPixels(page), { timeout: 10_000 }).toEqual(before);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: the page does not scroll sideways, opened tables included', async (_, viewport) => {
    const { page } = await openReport(browser, fullReport, { viewport });
    await unfold(page);
    await expectFits(page);
    await page.close();
  });

  it('kernels can be sorted by a column and filtered by a word, and equal those of the document', async () => {
    const { page } = await openReport(browser, fullReport);
    const table = page.locator('#kernels table').first();
    const shares = () =>
      table
        .locator('tbody tr td:nth-child(5)')
        .evaluateAll((cells) =>
          cells.map((cell) =>
            Number((cell as unknown as { dataset: Record<string, string> }).dataset['sort']),
          ),
        );
    await table.locator('th:nth-child(5) button').click();
    const descending = await shares();
    expect(descending).toEqual(descending.toSorted((a, b) => b - a));
    expect(new Set(descending).size).toBeGreaterThan(5);
    await table.locator('th:nth-child(5) button').click();
    expect(await shares()).toEqual(descending.toReversed().toSorted((a, b) => a - b));
    await page.locator('#kernels .filter input').first().fill('nvjet');
    const remaining = await table.locator('tbody tr:visible td:first-child').allInnerTexts();
    const matching = result.trace!.data.kernels.slice(0, 25).filter(({ name }) => name.includes('nvjet'));
    expect(remaining).toHaveLength(matching.length);
    expect(remaining.every((text) => text.includes('nvjet'))).toBe(true);
    await page.close();
  });

  it('is dark if the reader prefers dark, and prints light without navigation', async () => {
    const { page, complaints } = await openReport(browser, fullReport, { colorScheme: 'dark' });
    expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(
      'rgb(15, 18, 23)',
    );
    await page.emulateMedia({ media: 'print' });
    await page.waitForSelector('html.printing', { state: 'attached' });
    expect(await page.locator('nav.contents').isVisible()).toBe(false);
    // A printed page must be fully drawn: nothing on it can be opened or waited for.
    const hasDrawnPixels = `(() => { const canvas = document.querySelector('[data-chart=timeline] canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, index) => index % 4 === 3 && value > 0); })()`;
    expect(await page.evaluate<boolean>(hasDrawnPixels)).toBe(true);
    expect((await page.pdf({ preferCSSPageSize: true })).byteLength).toBeGreaterThan(50_000);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('hostile names stay text in tables, titles, tooltips and data', async () => {
    const hostile = structuredClone(result);
    const { data } = hostile.trace!;
    hostile.session.title = hostileText;
    for (const kernel of data.kernels) Object.assign(kernel, { name: hostileText, short_name: hostileText });
    for (const row of data.launches.kernels)
      Object.assign(row, { kernel: hostileText, short_name: hostileText });
    data.timeline!.names = data.timeline!.names.map(() => hostileText);
    for (const stage of data.timeline!.stages) stage.label = hostileText;
    for (const lane of data.timeline!.lanes) lane.label = hostileText;
    for (const kernel of hostile.counters!.data.kernels) kernel.name = hostileText;
    const path = writeReport('hostile', hostile);
    const html = readFileSync(path, 'utf8');
    // The data of each chart, the document, and the script.
    expect(html.match(/<script/g)).toHaveLength(html.match(/data-chart=/g)!.length + 2);
    expect(html).not.toContain('<img');
    const { page, complaints, requests } = await openReport(browser, path);
    await page.locator('[data-chart=timeline]').scrollIntoViewIfNeeded();
    const box = await page.locator('[data-chart=timeline]').boundingBox();
    await page.mouse.move(box!.x + box!.width / 3, box!.y + 22);
    await expect.poll(() => page.locator('[data-chart=timeline]').innerText()).toContain('<');
    expect(await page.locator('img').count()).toBe(0);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    await page.close();
  });

  it('a session with only counters has a page too', async () => {
    const { page, complaints } = await openReport(
      browser,
      writeReport('counters', { ...result, trace: null, gemms: null }),
    );
    expect(await page.locator('section').count()).toBe(1);
    expect(await page.locator('#counters tbody tr').count()).toBeGreaterThan(2);
    expect(complaints).toEqual([]);
    await page.close();
  });
});
