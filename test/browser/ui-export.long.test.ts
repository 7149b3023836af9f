import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { openSession } from '../../src/session/open.js';
import { homeFolders } from '../../src/session/home.js';
import { exportedPage } from '../../src/ui/export-page.js';
import { inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { sqlRows, timelineReady } from './ui-server.js';

const name = 'launch_bound_decode-fault';
let setup: Place;
let browser: Browser;
let whole: string;
let coarse: string;

beforeAll(async () => {
  setup = place();
  const fixture = join(packageRoot(), 'test', 'fixtures', 'diagnosis', `${name}.tgz`);
  expect(inferscope(setup, ['session', 'import', fixture]).status).toBe(0);
  whole = join(setup.scratch, 'whole.html');
  const { status, stdout, stderr } = inferscope(setup, ['ui', name, '--export', whole]);
  expect([status, stdout.trim()], stderr).toEqual([0, whole]);
  // The same session with too little room for all of its events.
  const session = await openSession(name, homeFolders({ INFERSCOPE_HOME: setup.home }));
  const { html, note } = await exportedPage(session, statSync(whole).size - 60_000);
  expect(note).toContain('elsewhere time is summed by class in bins of');
  coarse = join(setup.scratch, 'coarse.html');
  writeFileSync(coarse, html);
  expect(statSync(coarse).size).toBeLessThan(statSync(whole).size - 60_000);
  browser = await launchBrowser();
}, 180_000);
afterAll(() => browser?.close());

async function open(
  path: string,
  hash = '',
): Promise<{ page: Page; complaints: string[]; requests: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  const url = pathToFileURL(path).href;
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !/^(?:data|blob):/.test(request.url()))
      requests.push(request.url());
  });
  await page.goto(`${url}${hash}`);
  await timelineReady(page);
  return { page, complaints, requests };
}

describe('an exported file with its timeline', () => {
  it('links a finding to its gap, offline', async () => {
    const { page, complaints, requests } = await open(whole);
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

  it('finds a kernel, shows its row and its launch, and sums a selection, like the server', async () => {
    const { page, complaints, requests } = await open(whole);
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

  it('says what is exported only coarsely, and has all events of the slowest step', async () => {
    const { page, complaints, requests } = await open(coarse);
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

  it('redraws its waterfalls under a change as the command predicts, and back', async () => {
    const { page, complaints, requests } = await open(whole);
    const total = async (): Promise<string> => (await page.innerText('#waterfall')).replace(/\s+/g, ' ');
    const measured = await total();
    await page.click('#switches a:text-is("cudagraph")');
    await page.waitForSelector('#switches a[aria-current]:text-is("cudagraph")');
    const { stdout } = inferscope(setup, ['explain', name, '--what-if', 'cudagraph', '--json']);
    const { data } = JSON.parse(stdout) as { data: { stages: { after_ms: { value: number } }[] } };
    const [stage] = data.stages;
    const after = await total();
    expect(after).not.toBe(measured);
    expect(after).toContain(`${stage!.after_ms.value.toFixed(2)} ms`);
    await page.click('#switches a:text-is("as measured")');
    await expect.poll(total).toBe(measured);
    expect([complaints, requests]).toEqual([[], []]);
    await page.close();
  });

  it('has the requests of each load, and memory over time', async () => {
    for (const [file, ids] of [
      ['vllm-0.26-h200/bench-serve.tgz', ['requests-1', 'requests-2', 'requests-3']],
      ['monitor-0.1-h200/session.tar.gz', ['memory-over-time']],
    ] as const) {
      const fixture = join(packageRoot(), 'test', 'fixtures', file);
      const { stdout } = inferscope(setup, ['session', 'import', fixture, '--json']);
      const id = /"id": ?"([^"]+)"/.exec(stdout)![1]!;
      const path = join(setup.scratch, `${id}.html`);
      expect(inferscope(setup, ['ui', id, '--export', path]).status).toBe(0);
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      await page.goto(pathToFileURL(path).href);
      // Named as on the page, not by execution.
      if (ids.length > 1)
        expect(await page.locator('section[id^=requests-] h2').allInnerTexts()).toEqual([
          'Requests: 4 users',
          'Requests: 16 users',
          'Requests: 32 users',
        ]);
      for (const section of ids) {
        await page.locator(`#${section}`).scrollIntoViewIfNeeded();
        await page.waitForSelector(`#${section} .chart svg path`, { state: 'attached' });
      }
      await page.close();
    }
  });

  it('has at most 5 MB and starts no server', () => {
    expect(statSync(whole).size).toBeLessThan(5_000_000);
    expect(readFileSync(whole, 'utf8')).not.toMatch(/https?:\/\/(?!www\.w3\.org)[^\s"'<]+\.js/);
    const ran = inferscope(setup, ['ui', name, '--export', join(setup.scratch, 'x.html'), '--port', '7777']);
    expect(ran.status).toBe(2);
    expect(ran.stderr).toContain('--port');
    expect(inferscope(setup, ['ui', name, '--export', setup.scratch]).status).toBe(2);
  });
});
