import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSession } from '../../src/session/open.js';
import { homeFolders } from '../../src/session/home.js';
import { exportedPage } from '../../src/ui/export-page.js';
import { createSetup, inferscope, sqlRows, type TestSetup } from '../cli/run-cli.js';
import { launchBrowser } from './chromium.js';
import { waitForTimeline } from './ui-server.js';
import { watch, type OpenReport } from './report-page.js';
import { importArchive } from './ui-pages.js';

const name = 'launch_bound_decode-fault';
let setup: TestSetup;
let browser: Browser;
let fullExport: string;
/** The same session with too little room for all of its events. */
let coarseExport: string;

beforeAll(async () => {
  setup = createSetup();
  importArchive(setup, `diagnosis/${name}.tgz`);
  fullExport = join(setup.scratch, 'full.html');
  const { status, stdout, stderr } = inferscope(setup, ['ui', name, '--export', fullExport]);
  expect([status, stdout.trim()], stderr).toEqual([0, fullExport]);
  const session = await openSession(name, homeFolders({ INFERSCOPE_HOME: setup.home }));
  const { html, note } = await exportedPage(session, { limitBytes: statSync(fullExport).size - 60_000 });
  expect(note).toContain('elsewhere time is summed by class in bins of');
  coarseExport = join(setup.scratch, 'coarse.html');
  writeFileSync(coarseExport, html);
  expect(statSync(coarseExport).size).toBeLessThan(statSync(fullExport).size - 60_000);
  browser = await launchBrowser();
}, 180_000);
afterAll(() => browser?.close());

async function openExport(path: string): Promise<OpenReport> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const url = pathToFileURL(path).href;
  const watched = watch(page, url);
  await page.goto(url);
  await waitForTimeline(page);
  return { page, ...watched };
}

describe('an exported file with its timeline', () => {
  it('links a finding to its gap, without requests', async () => {
    const { page, complaints, requests } = await openExport(fullExport);
    await page.click('#findings .place a[href^="#timeline?"]');
    await page.waitForSelector('#details table');
    const mark = new URLSearchParams(new URL(page.url()).hash.replace('#timeline', '')).get('mark')!;
    const [gap] = sqlRows(
      setup,
      name,
      `SELECT start_ns, start_ns + dur_ns FROM gaps WHERE launch_latency_ns > 0 AND start_ns = ${mark.split(',')[0]}`,
    );
    expect(gap).toEqual(mark.split(',').map(Number));
    expect(await page.textContent('#details')).toContain('launch latency');
    await expect.poll(() => page.evaluate<number>('scrollY')).toBeGreaterThan(100);
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it('finds a kernel, shows its fields and its launch, like the server', async () => {
    const { page, complaints, requests } = await openExport(fullExport);
    await page.click('#timeline');
    await page.keyboard.press('/');
    await page.keyboard.type('elementwise');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#details dl');
    const [[kernels]] = sqlRows(
      setup,
      name,
      `SELECT count(*)::INT FROM (SELECT name, execution_id FROM kernels UNION ALL SELECT name, execution_id FROM ops UNION ALL SELECT name, execution_id FROM api_calls)
       WHERE name ILIKE '%elementwise%' AND execution_id = (SELECT execution_id FROM kernels GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)`,
    ) as [[number]];
    expect(await page.textContent('#found')).toBe(`${kernels} found`);
    expect(await page.textContent('#details dl')).toContain('registers');
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toMatch(/launch/i);
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toContain('elementwise');
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it('says which part is exported only as sums, and has all events of the slowest step', async () => {
    const { page, complaints, requests } = await openExport(coarseExport);
    expect(await page.textContent('#status')).toContain('Single events are here for');
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    const box = (await page.locator('#timeline canvas').boundingBox())!;
    await page.keyboard.down('Shift');
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 1000, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await expect.poll(() => page.textContent('#status')).toContain('No sums here.');
    await page.selectOption('#step', { index: 2 });
    await page.keyboard.press('Escape');
    await page.fill('#search', 'elementwise');
    await page.press('#search', 'Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#details dl')).toContain('registers');
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it('redraws its waterfalls under a what-if change with the times of the command, and back as measured', async () => {
    const { page, complaints, requests } = await openExport(fullExport);
    const readWaterfall = async (): Promise<string> =>
      (await page.innerText('#waterfall')).replace(/\s+/g, ' ');
    const measured = await readWaterfall();
    await page.click('#switches a:text-is("cudagraph")');
    await page.waitForSelector('#switches a[aria-current]:text-is("cudagraph")');
    const { stdout } = inferscope(setup, ['explain', name, '--what-if', 'cudagraph', '--json']);
    const { data } = JSON.parse(stdout) as { data: { stages: { after_ms: { value: number } }[] } };
    const [stage] = data.stages;
    const after = await readWaterfall();
    expect(after).not.toBe(measured);
    // The table has more digits than the interval supports.
    const text = (await page.textContent('#waterfall'))!.replaceAll(/\s/g, ' ');
    expect(text).toContain(`${stage!.after_ms.value.toFixed(2)} ms`);
    await page.click('#switches a:text-is("as measured")');
    await expect.poll(readWaterfall).toBe(measured);
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it('has the requests of each load, and memory over time', async () => {
    for (const [session, file, sections] of [
      ['load', 'vllm-0.26-h200/bench-serve.tgz', ['requests-1', 'requests-2', 'requests-3']],
      ['watched', 'monitor-0.1-h200/session.tar.gz', ['memory-over-time']],
    ] as const) {
      importArchive(setup, file, session);
      const path = join(setup.scratch, `${session}.html`);
      expect(inferscope(setup, ['ui', session, '--export', path]).status).toBe(0);
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      await page.goto(pathToFileURL(path).href);
      // The headings name loads by their users, not by execution.
      if (sections.length > 1)
        expect(await page.locator('section[id^=requests-] h2').allInnerTexts()).toEqual([
          'Requests: 4 users',
          'Requests: 16 users',
          'Requests: 32 users',
        ]);
      for (const section of sections) {
        await page.locator(`#${section}`).scrollIntoViewIfNeeded();
        await page.waitForSelector(`#${section} .chart svg path`, { state: 'attached' });
      }
      await page.close();
    }
  });

  it('is at most 5 MB; --export rejects --port and a path that is a folder', () => {
    expect(statSync(fullExport).size).toBeLessThan(5_000_000);
    expect(readFileSync(fullExport, 'utf8')).not.toMatch(/https?:\/\/(?!www\.w3\.org)[^\s"'<]+\.js/);
    const result = inferscope(setup, [
      'ui',
      name,
      '--export',
      join(setup.scratch, 'x.html'),
      '--port',
      '7777',
    ]);
    expect(result.status).toBe(2);
    expect(result.stderr).toContain('--port');
    expect(inferscope(setup, ['ui', name, '--export', setup.scratch]).status).toBe(2);
  });
});
