import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import { servingDocumentSchema } from '../model/documents/serving.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { latencyLabels, loadLabel } from '../vocabulary/loads.js';
import { testExplain } from './test-explain.js';
import { hostileText } from './test-profile.js';
import { testServing } from './test-serving.js';
import type { Block, Level, Table, View } from './block.js';
import { byLoad, latencyChart } from './serving-series.js';
import { servingView } from './serving.js';

const isTable = (block: Block): block is Block & Table => block.type === 'table';
const tableOf = (view: View, id: string): Table => {
  const blocks = view.sections.find((section) => section.id === id)!.blocks;
  return blocks
    .map((block) => (block.type === 'chart' ? block.behind : block))
    .find((block) => isTable(block))!;
};
/** Cells by row and column id, as in CSV. */
const rows = ({ columns, rows: all }: Table) =>
  all.map(({ cells }) =>
    Object.fromEntries(columns.map(({ id }, index) => [id, rawValue(cells[index] ?? '')])),
  );
const leadText = (view: View) =>
  view.lead
    .flatMap((block) => (block.type === 'facts' ? block.items : []))
    .map(({ name, text }) => `${name}: ${plainText(text)}`);

test('the documents that views are tested with are valid', () => {
  for (const kind of ['closed', 'poisson'] as const)
    expect(servingDocumentSchema.safeParse(testServing(kind)).error).toBeUndefined();
});

test('has a row per load: successes, share within the SLO, rates, percentiles, and whether the client was the limit', () => {
  const view = servingView(testServing());
  const loads = rows(tableOf(view, 'loads'));
  expect(loads.map(({ load, ok, failed, client_bound: bound }) => [load, ok, Number(failed), bound])).toEqual(
    [
      ['1 user', 100, 0, 'no'],
      ['4 users', 100, 0, 'no'],
      ['16 users', 100, 0, 'no'],
      ['32 users', 100, 0, 'no'],
      ['64 users', 93, 7, 'yes'],
    ],
  );
  // 32 users: 16 more than the server computes at a time, TTFT 40 + 2 × 32 + 25 × 16 ms; 1.2 − 16 / 40 of them in time.
  expect(loads[3]).toMatchObject({ meets_slo: 'no', ttft_p50_ms: 504 });
  expect(loads[3]!['within_slo_share']).toBeCloseTo(0.8);
  expect(loads[3]!['ttft_p99_ms']).toBeCloseTo(504 * 2.1);
  expect(leadText(view)[2]).toBe('Client-bound: Yes, at 64 users: these latencies include its delays.');
  expect(leadText(view)[3]).toBe(
    'Failures: 7 of 500 measured requests failed; they are excluded from latencies.',
  );
});

test('why the client was the limit is said once, below the table of the load generator', () => {
  const text = terminalView(servingView(testServing()), { width: 200, level: 3 });
  expect(text.split('the event loop was busy 97 % of the time')).toHaveLength(2);
});

test('a fast client and servers without a cache raise no doubt', () => {
  const { data } = testServing();
  const points = data.points.filter(({ client }) => !client.bound);
  const view = servingView({ ...testServing(), data: { ...data, points, probe: null } });
  expect(leadText(view).slice(2)).toEqual([
    'Client-bound: No: the load generator kept up at every load level.',
    'Failures: None of 400 measured requests failed.',
  ]);
  const columns = tableOf(view, 'loads').columns.map(({ id }) => id);
  expect(columns).not.toContain('client_bound');
  expect(columns).not.toContain('failed');
});

test('latency has every statistic with its interval; server and client have their own tables', () => {
  const view = servingView(testServing('poisson'));
  const [first] = rows(tableOf(view, 'latency'));
  expect(first).toMatchObject({ load: '1 req/s (Poisson)', n: 100, p50_ms: 42, max_ms: 42 * 2.6 });
  expect(first!['ci95_ms']).toBe('42.8\u00a0ms to 46.2\u00a0ms');
  expect(rows(tableOf(view, 'server')).map((row) => row['waiting_max'])).toEqual([0, 0, 0, 16, 48]);
  expect(rows(tableOf(view, 'client'))[4]).toMatchObject({
    send_lag_p99_ms: 0.8,
    loop_delay_max_ms: 4,
    threads: 1,
    client_bound: 'yes',
  });
  expect(rows(tableOf(view, 'tokens'))[0]).toMatchObject({
    measured: 100,
    warmup: 5,
    input_tokens: 128,
    output_tokens: 63.5,
    shorter: 3,
  });
  expect(rows(tableOf(view, 'failures')).map(({ kind, count, share }) => [kind, count, share])).toEqual([
    ['HTTP 503', 5, 0.05],
    ['stream cut', 2, 0.02],
    ['cancelled', 2, null],
  ]);
});

test.each([80, 120])('text fits %d columns; the summary is short', (width) => {
  for (const kind of ['closed', 'poisson'] as const)
    for (const level of [1, 2] as Level[]) {
      const lines = terminalView(servingView(testServing(kind)), { width, level }).split('\n');
      expect(lines.filter((line) => [...line].length > width)).toEqual([]);
      if (level === 1) expect(lines.length).toBeLessThanOrEqual(26);
    }
});

test('stages and the waterfall come before the loads', () => {
  const text = terminalView(servingView(testServing()), { width: 80, explain: testExplain() });
  // A long summary leaves out other blocks, but never the saturation.
  const parts = [/^ +decode step +23\.3 ms/m, /host between launches/, /Saturation/, /TTFT p50/];
  const positions = parts.map((part) => text.search(part));
  expect(positions[0]).toBeGreaterThan(0);
  expect(positions).toEqual(positions.toSorted((a, b) => a - b));
});

const labels = (document = testServing()) =>
  servingView(document)
    .sections.flatMap(({ blocks }) => blocks)
    .flatMap((block) => (block.type === 'chart' ? [block.title] : []));

test('the page has its charts with keys and tables, and names from the server stay text', () => {
  const serving = testServing();
  serving.data.points[3]!.requests.failures[0]!.example = hostileText;
  const html = pageOfView(servingView(serving), { clientScript: '' });
  expect(labels()).toEqual([
    ...(['ttft', 'tpot', 'itl', 'e2e'] as const).map((id) => latencyLabels[id]),
    'Tokens per second',
    'Requests per second',
  ]);
  expect(labels(testServing('poisson'))).toContain(latencyLabels.e2e_from_schedule);
  for (const part of html.split('<figure>').slice(1))
    expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  expect(html.match(/class="line-key"/g)).toHaveLength(4 * 3 + 2 + 2);
  // The data of each chart, the document, and the script.
  expect(html.match(/<script/g)).toHaveLength(html.match(/data-chart=/g)!.length + 2);
  expect(html).not.toContain('<img');
});

test('a target of the SLO is shown as it was typed, and the lengths of a trace as varying', () => {
  const { data } = testServing('closed');
  const slo = { ttft_ms: 200, tpot_ms: 30, e2e_ms: null, share: 0.99 };
  const text = terminalView(servingView(document('serving', '1.1', { ...data, slo })), {
    width: 120,
    level: 2,
  });
  const prompts = { ...data.prompts, input_len: null, output_len: null };
  const replayed = terminalView(servingView(document('serving', '1.1', { ...data, prompts })), {
    width: 120,
    level: 2,
  });
  expect(replayed).toMatch(/prompt +varies per request/);
  expect(text.replaceAll('\u00a0', ' ')).toMatch(
    /SLO +TTFT ≤ 200 ms and TPOT ≤ 30 ms for at least 99 % of requests/,
  );
});

test('a chart orders loads by size, and shows the SLO limit only near the lines', () => {
  const { data } = testServing();
  const { x, panels } = latencyChart(data, 'ttft');
  expect(x).toMatchObject({ categories: byLoad(data).map(({ load }) => loadLabel(load)) });
  const values = panels[0]!.series[0]!.points.map(([, y]) => y!);
  expect(values).toEqual(values.toSorted((a, b) => a - b));
  const bounds = (ttft_ms: number) =>
    latencyChart({ ...data, slo: { ...data.slo!, ttft_ms } }, 'ttft').panels[0]!.bounds!.length;
  expect([bounds(200), bounds(60_000)]).toEqual([1, 0]);
});
