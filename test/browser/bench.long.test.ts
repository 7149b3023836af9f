import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { benchDocumentSchema, type BenchResult, type BenchSpread } from '../../src/model/documents/bench.js';
import { monitorDocumentSchema } from '../../src/model/documents/monitor.js';
import { servingDocumentSchema, type ServingResult } from '../../src/model/documents/serving.js';
import { packageRoot } from '../../src/model/installation.js';
import { figure } from '../../src/model/figure.js';
import { formatFigureWithInterval, formatMs, keepUnits } from '../../src/vocabulary/format.js';
import { cli, environment, inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { chartsDrawn, desktop, open, phone } from './opened.js';

let setup: Place;
let browser: Browser;
let bench: BenchResult;
let serving: ServingResult;
const reports = { bench: '', serving: '', monitor: '' };

function json(args: string[]): unknown {
  const { status, stdout, stderr } = inferscope(setup, [...args, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  return JSON.parse(stdout);
}

async function serve(): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(
    process.execPath,
    [cli, 'serve', '--model', setup.tiny, '--threads', '1', '--port', '0', '--context-len', '128'],
    { cwd: setup.scratch, env: environment(setup), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  return { child, url: line.toString().trim() };
}

// Sessions written by the built binary, as in a user's browser.
beforeAll(async () => {
  setup = place();
  const sizes = ['--batch-size', '1,2', '--input-len', '8,16,32', '--output-len', '4,6', '--threads', '1'];
  const runs = ['--runs', '3', '--launches', '2', '--quiet'];
  bench = benchDocumentSchema.parse(json(['bench', 'suite', '--model', setup.tiny, ...sizes, ...runs])).data;
  reports.bench = join(setup.home, 'sessions', bench.session.id, 'derived', 'report.html');
  const { child, url } = await serve();
  try {
    const load = ['--concurrency', '1,2', '--requests', '4', '--input-len', '8', '--output-len', '6'];
    const slo = ['--slo', 'ttft=60s', '--quiet'];
    serving = servingDocumentSchema.parse(json(['bench', 'serve', url, ...load, ...slo])).data;
  } finally {
    child.kill('SIGKILL');
  }
  const recorded = join(packageRoot(), 'test', 'fixtures', 'nvidia-smi-580-h200', 'nvidia-smi-query.csv');
  const monitor = monitorDocumentSchema.parse(json(['monitor', recorded, '--record'])).data;
  reports.monitor = join(setup.home, 'sessions', monitor.session.id!, 'derived', 'report.html');
  reports.serving = join(setup.home, 'sessions', serving.session.id, 'derived', 'report.html');
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
});

const drawnIn = {
  bench: ['batch lines', 'sequence lines', 'spread spread', 'machine lines', 'telemetry lines'],
  serving: ['latency lines', 'throughput lines'],
  monitor: ['gpu0 lines'],
};

describe.each(['bench', 'serving', 'monitor'] as const)('the report of a %s', (kind) => {
  it('draws its charts with a table behind each, has no errors, loads nothing, and is under 2 MB', async () => {
    const { page, complaints, requests } = await open(browser, reports[kind]);
    const drawn = await chartsDrawn(page);
    expect(drawn.map(({ name }) => name)).toEqual(expect.arrayContaining(drawnIn[kind]));
    for (const chart of drawn) {
      expect(chart.shapes, chart.name).toBeGreaterThan(3);
      expect(chart.texts, chart.name).toBeGreaterThan(2);
      expect(chart.inside, chart.name).toBe(true);
    }
    const empty = await page.$$eval(
      'figure',
      (figures) =>
        figures.filter((candidate) => candidate.querySelectorAll('details tbody tr').length === 0).length,
    );
    expect(empty).toBe(0);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    expect(statSync(reports[kind]).size).toBeLessThan(2e6);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: the page does not scroll sideways, opened tables included', async (_, viewport) => {
    const { page } = await open(browser, reports[kind], { viewport });
    await page.$$eval('details', (all) => all.forEach((details) => details.setAttribute('open', '')));
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(viewport.width);
    for (const chart of await chartsDrawn(page)) expect(chart.inside, chart.name).toBe(true);
    await page.close();
  });
});

/** Cells of the first row of the table behind a chart. */
const firstRow = (chart: string) =>
  `[...document.querySelector('${chart}').closest('figure').querySelectorAll('details tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent.trim()))`;

it('the tables behind the charts have the means of the JSON document', async () => {
  const { page } = await open(browser, reports.bench);
  const rows = await page.evaluate<string[][]>(
    firstRow('#batch [data-chart][aria-label^="Time per output token"]'),
  );
  const swept = bench.variants[0]!.points.filter(({ parts }) => parts.includes('throughput'));
  expect(rows).toHaveLength(swept.length);
  for (const point of swept) {
    const { mean, unit, ci95, source } = point.latency.tpot_ms as BenchSpread;
    const cell = keepUnits(formatFigureWithInterval(figure(mean, unit, source, ci95 ? { ci95 } : {})));
    const batchRows = rows.filter(([batch]) => batch?.startsWith(String(point.batch_size)));
    expect(
      batchRows.some((row) => row.includes(cell)),
      `${cell} in ${JSON.stringify(batchRows)}`,
    ).toBe(true);
  }
  // The latency answer is at the top of the page; the overview has the other answers.
  const answers = bench.variants[0]!.answers;
  const leading = answers.find(({ id }) => id === 'latency')!.answer.slice(0, 20);
  expect(await page.locator('body').innerText()).toContain(leading);
  expect(await page.locator('#overview').innerText()).not.toContain(leading);
  await page.close();
});

it('the load table has the percentiles of the JSON document, and the verdict is at the top', async () => {
  const { page } = await open(browser, reports.serving);
  const rows = await page.evaluate<string[][]>(firstRow('#latency [data-chart][aria-label*="TPOT"]'));
  for (const [index, { latency }] of serving.points.entries()) {
    if ('value' in latency.tpot) throw new Error('no TPOT');
    expect(rows[index]).toContain(keepUnits(formatMs(latency.tpot.p99)));
  }
  expect(await page.locator('#overview').innerText()).toContain('Client-bound');
  await page.close();
});

it('imported results of another tool open as a page that marks metrics that are not comparable', async () => {
  const file = join(packageRoot(), 'test/fixtures/benchmark-results-from-schema/guidellm-benchmarks.json');
  const { status, stdout } = inferscope(setup, ['import', file]);
  expect(status).toBe(0);
  const path = /^\s*report: (\/\S+report\.html)$/m.exec(stdout)?.[1];
  const { page, complaints, requests } = await open(browser, path ?? 'no report was named', {
    viewport: phone,
  });
  expect(await page.locator('#summary').innerText()).toContain('not comparable');
  expect(await page.getByText('not comparable', { exact: true }).count()).toBeGreaterThan(1);
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
    phone.width,
  );
  expect([complaints, requests]).toEqual([[], []]);
  await page.close();
});

it('`report` writes the pages again, and --json prints their documents', () => {
  for (const [id, schema] of [
    [bench.session.id, 'inferscope/bench/1.1'],
    [serving.session.id, 'inferscope/serving/1.0'],
  ] as const) {
    expect(json(['report', '--session', id])).toMatchObject({ schema });
    const path = join(setup.scratch, 'again.html');
    const { status, stdout } = inferscope(setup, ['report', '--session', id, '--output', path]);
    expect([status, stdout.trim()]).toEqual([0, path]);
    expect(statSync(path).size).toBeGreaterThan(1e5);
  }
});
