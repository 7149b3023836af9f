import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { inferscope } from '../cli/run-cli.js';
import { waitForCharts } from './report-page.js';
import { importArchive, UiPages } from './ui-pages.js';
import { waitForTimeline } from './ui-server.js';
import { fixture } from '../cli/capture-files.js';

const ui = new UiPages((setup) => {
  importArchive(setup, 'vllm-0.26-h200/bench-serve.tgz', 'serve');
  importArchive(setup, 'monitor-0.1-h200/session.tar.gz', 'watched');
  // Two ranks of a job.
  const traces = fixture('nccl-2h100/rank*.json.gz');
  expect(inferscope(setup, ['import', traces, '--ranks', '--name', 'job']).status).toBe(0);
  // These logs count ranks separately in each communicator, so they are not a job.
  const logs = [4100, 4101].map((pid) => fixture(`nccl-inspector-from-docs/node-a-pid${pid}.log`));
  expect(inferscope(setup, ['import', ...logs, '--name', 'logs']).status).toBe(0);
});

async function openCharts(name: string, path: string): Promise<Page> {
  const page = await ui.open(ui.pathOf(name, path));
  await waitForCharts(page);
  return page;
}

interface Chart {
  panels: { title?: string; series: { points: [number, number][] }[] }[];
}
const readChart = async (page: Page, within = 'main'): Promise<Chart> =>
  JSON.parse((await page.locator(`${within} figure > script`).first().textContent())!) as Chart;

/** The number of data points that the page has drawn as SVG. */
const countShapes = (page: Page): Promise<number> => page.locator('.chart svg path[fill^="#"]').count();

it('draws each request of a load with the values of SQL, and switches the load', async () => {
  const page = await openCharts('serve', '/requests');
  const [execution] = ui.sql('serve', 'SELECT min(execution_id) FROM requests')[0] as [string];
  const [count, ttft] = ui.sql(
    'serve',
    `SELECT count(ttft_ns), sum(ttft_ns) / 1e6 FROM requests WHERE execution_id = '${execution}'`,
  )[0] as [number, number];
  const { panels } = await readChart(page, '#requests');
  const points = panels[0]!.series.flatMap((line) => line.points);
  expect(panels[0]!.title).toBe('TTFT');
  expect(points).toHaveLength(count);
  expect(points.reduce((sum, [, ms]) => sum + ms, 0) / ttft).toBeCloseTo(1, 6);
  // One point per request and latency.
  expect(await countShapes(page)).toBeGreaterThanOrEqual(2 * points.length);
  await page.click('#requests a[href*="execution="]');
  await page.waitForURL(/execution=/);
  await waitForCharts(page);
  expect(await countShapes(page)).toBeGreaterThan(0);
  await page.setViewportSize({ width: 390, height: 800 });
  // Charts are redrawn after the window was resized.
  const overflow = () => page.$eval('html', (html) => html.scrollWidth - html.clientWidth);
  await expect.poll(overflow, { timeout: 10_000 }).toBeLessThanOrEqual(0);
  await page.close();
});

it('draws requests in flight and latency against load with the values of SQL', async () => {
  const page = await openCharts('serve', '/requests');
  const loads = ui.sql(
    'serve',
    `SELECT quantile_cont(ttft_ns, 0.5) / 1e6 FROM requests WHERE status = 'ok' AND NOT coalesce(warmup, false) GROUP BY execution_id ORDER BY execution_id`,
  ) as [number][];
  const { panels } = await readChart(page);
  expect(panels[0]!.series[0]!.points.map(([, ms]) => ms)).toEqual(
    loads.map(([ms]) => expect.closeTo(ms, 6)),
  );
  const [requestCount, total] = ui.sql(
    'serve',
    `SELECT count(*), sum(end_ns - sent_ns) / 1e9 FROM requests WHERE execution_id = (SELECT min(execution_id) FROM requests)`,
  )[0] as [number, number];
  const gantt = JSON.parse((await page.locator('#gantt figure > script').first().textContent())!) as {
    lanes: string[];
    kinds: { title: string }[];
    spans: [number, number, number, number][];
  };
  const inFlight = gantt.spans.filter(([, , , kind]) => !gantt.kinds[kind]!.title.endsWith('due, not sent'));
  expect(inFlight).toHaveLength(2 * requestCount);
  expect(inFlight.reduce((sum, [, , ns]) => sum + ns, 0) / 1e9 / total).toBeCloseTo(1, 6);
  // The first load has four users.
  expect(gantt.lanes).toHaveLength(4);
  await page.click('#requests details summary');
  await page.locator('#requests table a[href*="from="]').first().click();
  await page.waitForURL(/from=0.*#gantt/);
  await page.close();
});

it('draws the sampled memory up to its largest value', async () => {
  const page = await openCharts('watched', '/memory');
  const [largest] = ui.sql(
    'watched',
    "SELECT max(bytes) FROM memory WHERE kind IN ('used', 'process') AND device = 0",
  )[0] as [number];
  const { panels } = await readChart(page);
  const drawn = Math.max(...panels[0]!.series.flatMap((line) => line.points.map(([, bytes]) => bytes)));
  expect(drawn).toBe(largest);
  await page.close();
});

it('names loads on the memory page as on the requests page', async () => {
  const requests = await openCharts('serve', '/requests');
  const labels = await requests.locator('#requests p').first().locator('a, strong').allInnerTexts();
  expect(labels.length).toBeGreaterThan(1);
  const memory = await openCharts('serve', '/memory');
  const titles = await memory.locator('#memory-over-time h3').allInnerTexts();
  // The name of its only line follows.
  const names = (title: string, label: string) => title.replace(/:.*/, '').endsWith(`, ${label}`);
  for (const label of labels) expect(titles.filter((title) => names(title, label))).not.toEqual([]);
  expect(titles.filter((title) => !labels.some((label) => names(title, label)))).toEqual([]);
  await requests.close();
  await memory.close();
});

it('shows how long each rank waited in the calls of a collective, and saves these times as CSV', async () => {
  const page = await openCharts('job', '/ranks');
  await page.locator('#collective a[href*="of="]').first().click();
  await page.waitForURL(/of=/);
  await waitForCharts(page);
  const [operation, bytes] = new URL(page.url()).searchParams.get('of')!.split(' ');
  const waits = ui.sql(
    'job',
    `SELECT rank, sum(wait_ns) / 1e6 FROM (SELECT rank, dur_ns - min(dur_ns) OVER (PARTITION BY communicator, sequence) AS wait_ns
     FROM collectives WHERE operation = '${operation}' AND bytes = ${bytes}) GROUP BY 1 ORDER BY 1`,
  ) as [number, number][];
  expect(waits).toHaveLength(2);
  const download = page.waitForEvent('download');
  await page.click('#collective .save');
  const [head, ...rows] = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\r\n');
  expect(head).toBe('rank,call,ms');
  for (const [rank, ms] of waits) {
    // Each call has its own column, because there are fewer than 200.
    const rankRows = rows.map((row) => row.split(',')).filter(([rankText]) => rankText === String(rank));
    expect(rankRows.reduce((sum, [, , wait]) => sum + Number(wait), 0)).toBeCloseTo(ms, 6);
  }
  expect(await page.locator('#collective .legend li').count()).toBe(3);
  await page.click('#collective details summary');
  await page.locator('#collective table a[href*="/timeline?"]').first().click();
  await page.waitForSelector('#details h2', { timeout: 60_000 });
  await page.close();
});

it('offers the ranks page for a job, not for logs without job ranks', async () => {
  for (const [name, linkCount] of [
    ['job', 1],
    ['logs', 0],
  ] as const) {
    const page = await ui.open(ui.pathOf(name));
    expect(await page.locator('nav.pages a', { hasText: 'Ranks' }).count()).toBe(linkCount);
    await page.close();
  }
});

it('shows the samples of a session without events on the timeline', async () => {
  const page = await ui.open(ui.pathOf('watched', '/timeline'));
  await waitForTimeline(page);
  await expect.poll(() => page.textContent('#status')).toContain('Only samples were recorded');
  const colors = await page.evaluate<number>(`(() => {
    const canvas = document.querySelector('#timeline canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  })()`);
  // The curves of the counters and their names are drawn on the background.
  expect(colors).toBeGreaterThan(3);
  await page.close();
});

it('says why a page is empty, and what records its data', async () => {
  const page = await openCharts('watched', '/requests');
  expect(await page.innerText('#requests')).toContain('inferscope bench serve');
  await page.close();
  expect(ui.complaints).toEqual([]);
});
