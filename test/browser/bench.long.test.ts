import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { benchDocumentSchema, type BenchResult, type BenchSpread } from '../../src/model/documents/bench.js';
import { monitorDocumentSchema } from '../../src/model/documents/monitor.js';
import { servingDocumentSchema, type ServingResult } from '../../src/model/documents/serving.js';
import { figure } from '../../src/model/figure.js';
import { formatFigureWithInterval, formatMs, keepUnits } from '../../src/vocabulary/format.js';
import { inferscope, createSetup, type TestSetup, startServe } from '../cli/run-cli.js';
import { launchBrowser } from './chromium.js';
import { readCharts, desktop, openReport, phone, unfold, expectFits } from './report-page.js';
import { captures, fixture } from '../cli/capture-files.js';

let setup: TestSetup;
let browser: Browser;
let bench: BenchResult;
let serving: ServingResult;
const reports = { bench: '', serving: '', monitor: '' };

function runJson(args: string[]): unknown {
  const { status, stdout, stderr } = inferscope(setup, [...args, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  return JSON.parse(stdout);
}

// The built binary measures the sessions and writes their reports.
beforeAll(async () => {
  setup = createSetup();
  const sizes = ['--batch-size', '1,2', '--input-len', '8,16,32', '--output-len', '4,6', '--threads', '1'];
  const runs = ['--runs', '3', '--launches', '2', '--quiet'];
  bench = benchDocumentSchema.parse(
    runJson(['bench', 'suite', '--model', setup.tiny, ...sizes, ...runs]),
  ).data;
  reports.bench = join(setup.home, 'sessions', bench.session.id, 'derived', 'report.html');
  const { child, url } = await startServe(setup);
  try {
    const load = ['--concurrency', '1,2', '--requests', '4', '--input-len', '8', '--output-len', '6'];
    const slo = ['--slo', 'ttft=60s', '--quiet'];
    serving = servingDocumentSchema.parse(runJson(['bench', 'serve', url, ...load, ...slo])).data;
  } finally {
    child.kill('SIGKILL');
  }
  const monitor = monitorDocumentSchema.parse(runJson(['monitor', captures.query, '--record'])).data;
  reports.monitor = join(setup.home, 'sessions', monitor.session.id!, 'derived', 'report.html');
  reports.serving = join(setup.home, 'sessions', serving.session.id, 'derived', 'report.html');
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
});

/** Charts that each report must have: section and kind. */
const expectedCharts = {
  bench: ['batch lines', 'sequence lines', 'spread spread', 'machine lines', 'telemetry lines'],
  serving: ['latency lines', 'throughput lines'],
  monitor: ['gpu0 lines'],
};

describe.each(['bench', 'serving', 'monitor'] as const)('the %s report', (kind) => {
  it('draws its charts with a table behind each, has no errors, loads nothing, and is under 2 MB', async () => {
    const { page, complaints, requests } = await openReport(browser, reports[kind]);
    const charts = await readCharts(page);
    expect(charts.map(({ name }) => name)).toEqual(expect.arrayContaining(expectedCharts[kind]));
    for (const chart of charts) {
      expect(chart.shapes, chart.name).toBeGreaterThan(3);
      expect(chart.texts, chart.name).toBeGreaterThan(2);
      expect(chart.inside, chart.name).toBe(true);
    }
    const figuresWithoutTable = await page.$$eval(
      'figure',
      (figures) =>
        figures.filter((candidate) => candidate.querySelectorAll('details tbody tr').length === 0).length,
    );
    expect(figuresWithoutTable).toBe(0);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([]);
    expect(statSync(reports[kind]).size).toBeLessThan(2e6);
    await page.close();
  });

  it.each([
    ['phone', phone],
    ['desktop', desktop],
  ])('%s: the page does not scroll sideways, opened tables included', async (_, viewport) => {
    const { page } = await openReport(browser, reports[kind], { viewport });
    await unfold(page);
    await expectFits(page);
    for (const chart of await readCharts(page)) expect(chart.inside, chart.name).toBe(true);
    await page.close();
  });
});

/** Script that returns the cells of all rows of the table behind a chart. */
const tableRows = (chart: string) =>
  `[...document.querySelector('${chart}').closest('figure').querySelectorAll('details tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent.trim()))`;

it('the tables behind the charts have the means of the JSON document', async () => {
  const { page } = await openReport(browser, reports.bench);
  const rows = await page.evaluate<string[][]>(
    tableRows('#batch [data-chart][aria-label^="Time per output token"]'),
  );
  const throughputPoints = bench.variants[0]!.points.filter(({ parts }) => parts.includes('throughput'));
  expect(rows).toHaveLength(throughputPoints.length);
  for (const point of throughputPoints) {
    const { mean, unit, ci95, source } = point.latency.tpot_ms as BenchSpread;
    const cell = keepUnits(formatFigureWithInterval(figure(mean, unit, source, ci95 ? { ci95 } : {})));
    const batchRows = rows.filter(([batch]) => batch?.startsWith(String(point.batch_size)));
    expect(
      batchRows.some((row) => row.includes(cell)),
      `${cell} in ${JSON.stringify(batchRows)}`,
    ).toBe(true);
  }
  // The answer about latency is at the top of the page, and the overview has the others.
  const answers = bench.variants[0]!.answers;
  const latencyAnswer = answers.find(({ id }) => id === 'latency')!.answer.slice(0, 20);
  expect(await page.locator('body').innerText()).toContain(latencyAnswer);
  expect(await page.locator('#overview').innerText()).not.toContain(latencyAnswer);
  await page.close();
});

it('the load table has the percentiles of the JSON document, and the verdict is at the top', async () => {
  const { page } = await openReport(browser, reports.serving);
  const rows = await page.evaluate<string[][]>(tableRows('#latency [data-chart][aria-label*="TPOT"]'));
  for (const [index, { latency }] of serving.points.entries()) {
    if ('value' in latency.tpot) throw new Error('no TPOT');
    expect(rows[index]).toContain(keepUnits(formatMs(latency.tpot.p99)));
  }
  expect(await page.locator('#overview').innerText()).toContain('Client-bound');
  await page.close();
});

it('imported results of another tool open as a page that marks metrics that are not comparable', async () => {
  const file = fixture('benchmark-results-from-schema/guidellm-benchmarks.json');
  const { status, stdout } = inferscope(setup, ['import', file]);
  expect(status).toBe(0);
  const path = /^\s*report: (\/\S+report\.html)$/m.exec(stdout)?.[1];
  const { page, complaints, requests } = await openReport(browser, path ?? 'no report was named', {
    viewport: phone,
  });
  expect(await page.locator('#summary').innerText()).toContain('not comparable');
  expect(await page.getByText('not comparable', { exact: true }).count()).toBeGreaterThan(1);
  await expectFits(page);
  expect([complaints, requests]).toEqual([[], []]);
  await page.close();
});

it('report writes the pages again, and report --json prints their documents', () => {
  for (const [id, schema] of [
    [bench.session.id, 'inferscope/bench/1.1'],
    [serving.session.id, 'inferscope/serving/1.2'],
  ] as const) {
    expect(runJson(['report', '--session', id])).toMatchObject({ schema });
    const path = join(setup.scratch, 'again.html');
    const { status, stdout } = inferscope(setup, ['report', '--session', id, '--output', path]);
    expect([status, stdout.trim()]).toEqual([0, path]);
    expect(statSync(path).size).toBeGreaterThan(1e5);
  }
});
