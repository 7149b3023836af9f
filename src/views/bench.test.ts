import { expect, test } from 'vitest';
import { benchDocumentSchema, type BenchSpread } from '../model/documents/bench.js';
import { figure } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { testBench } from './test-bench.js';
import { hostileText } from './test-profile.js';
import { benchView, flags, leadingAnswers } from './bench.js';
import type { Block, Level, Table } from './block.js';

type Bench = ReturnType<typeof testBench>;

const isTable = (block: Block): block is Block & Table => block.type === 'table';
const tables = (benchDocument: Bench, id: string): (Block & Table)[] =>
  (benchView(benchDocument).sections.find((section) => section.id === id)?.blocks ?? [])
    .map((block) => (block.type === 'chart' ? block.behind : block))
    .filter((block) => isTable(block));
/** Cells by row and column id, as in CSV. */
const rows = (table: Table | undefined) =>
  table!.rows.map(({ cells }) =>
    Object.fromEntries(table!.columns.map(({ id }, index) => [id, rawValue(cells[index] ?? '')])),
  );
const textOf = (benchDocument: Bench, level: Level, width = 80) =>
  terminalView(benchView(benchDocument), { width, level });
const words = (text: string) => text.replaceAll(/\s+/g, ' ');
const page = (benchDocument: Bench) =>
  pageOfView(benchView(benchDocument), { clientScript: '"use strict";' });
const pageWords = (benchDocument: Bench) =>
  words(
    page(benchDocument)
      .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
      .replaceAll(/&nbsp;|\u00a0/g, ' ')
      .replaceAll(/<[^>]+>/g, ' '),
  );

const oneVariant = () => testBench({ variants: 1 });
const cpu = () => testBench({ gpu: false, variants: 1 });

test('the documents that views are tested with are valid', () => {
  for (const benchDocument of [testBench(), oneVariant(), cpu()])
    expect(benchDocumentSchema.safeParse(benchDocument).error).toBeUndefined();
});

test('starts with the difference between variants, then speed and batch', () => {
  expect(leadingAnswers(testBench().data).map(({ id }) => id)).toEqual(['variants', 'latency', 'batch_knee']);
  const text = words(textOf(testBench(), 1));
  expect(text).toContain('mode=cudagraph is 1.6 times as fast per token');
  expect(words(textOf(testBench(), 2))).toContain(
    'TinyLlama-1.1B (random weights, bfloat16) · transformers 4.57.1 on NVIDIA H200',
  );
});

test('has a row per measured point with its lengths, its means as in the document, and its rate', () => {
  const benchDocument = oneVariant();
  const { points } = benchDocument.data.variants[0]!;
  const [table] = tables(benchDocument, 'points');
  expect(rows(table)).toHaveLength(11);
  const first = points[0]!;
  expect(rows(table)[0]).toEqual({
    point: 'b1-p128-o64',
    batch_size: 1,
    input_len: 128,
    output_len: 64,
    ttft_ms: (first.latency.ttft_ms as BenchSpread).mean,
    tpot_ms: (first.latency.tpot_ms as BenchSpread).mean,
    itl_ms: (first.latency.itl_ms as BenchSpread).mean,
    e2e_ms: (first.latency.e2e_ms as BenchSpread).mean,
    output_tokens_per_s: first.throughput.output_tokens_per_s.value,
  });
  // Cells show the interval together with the mean.
  expect(plainText(table!.rows[0]!.cells[4]!)).toMatch(/ms\s±\s/);
});

test('shows every percentile, outlier and launch of each latency; a single point shows them in the summary', () => {
  const benchDocument = oneVariant();
  const spread = benchDocument.data.variants[0]!.points[0]!.latency.ttft_ms as BenchSpread;
  const [, percentiles] = tables(benchDocument, 'points');
  expect(percentiles!.level).toBe(2);
  const { p50, p90, p95, p99, min, max, sd, n, outliers, launches } = spread;
  expect(rows(percentiles)[0]).toMatchObject({
    point: 'b1-p128-o64',
    metric: 'TTFT',
    min_ms: min,
    p50_ms: p50,
    p90_ms: p90,
    p95_ms: p95,
    p99_ms: p99,
    max_ms: max,
    sd_ms: sd,
    n,
    outliers,
    launches,
  });
  benchDocument.data.variants[0]!.points.splice(1);
  const [means, only] = tables(benchDocument, 'points');
  expect([means!.level, only!.level]).toEqual([2, 1]);
  expect(textOf(benchDocument, 1)).toMatch(/^ +TTFT +[\d.]+ ms/m);
});

test('a batch that did not fit has its reason and no row among the measured points', () => {
  const benchDocument = testBench();
  const [failed] = tables(benchDocument, 'points').slice(-1);
  expect(rows(failed)).toEqual([
    {
      variant: 'mode=eager',
      point: 'b32-p128-o64',
      outcome: 'out of memory',
      why: 'CUDA out of memory. Tried to allocate 2.00 GiB',
    },
  ]);
  expect(rows(tables(benchDocument, 'points')[0])).toHaveLength(21);
});

test('scaling is relative to the smallest batch, efficiency is scaling over batch size', () => {
  const [table] = tables(oneVariant(), 'batch');
  const [first, , third] = rows(table);
  expect([first!['scaling'], first!['efficiency']]).toEqual(['1.00×', 1]);
  const factor = Number(third!['output_tokens_per_s']) / Number(first!['output_tokens_per_s']);
  expect(third!['batch_size']).toBe('8 (knee)');
  expect(Number(third!['efficiency'])).toBeCloseTo(factor / 8);
});

test('fits are formulas with their error; a slope that may be 0 is marked', () => {
  const benchDocument = oneVariant();
  const fit = benchDocument.data.variants[0]!.fits.find(({ id }) => id === 'output')!;
  fit.coefficients_ci95 = [
    [1, 2],
    [-1, 1],
  ];
  const text = words(textOf(benchDocument, 2));
  expect(text).toMatch(
    /TTFT = 18\.0 \+ 0\.0120 × prompt tokens \+ 0\.00000400 × prompt tokens² ms \(error [\d.]+ %, R² [\d.]+, n = 4\)/,
  );
  expect(text.match(/slope not different from 0/g)).toHaveLength(1);
});

test('a flag of several points is shown once, with the range of its numbers and its points, warnings first', () => {
  expect(flags(oneVariant().data).map(({ severity, code, text }) => [severity, code, text])).toEqual([
    [
      'warning',
      'low_utilization',
      'The GPU does nothing in 60 to 90 % of a decode step (batch 1, 128 in + 64 out; batch 4, 128 in + 64 out; batch 8, 128 in + 64 out and 7 more).',
    ],
    ['info', 'good_utilization', 'The device is kept busy (batch 32, 128 in + 64 out).'],
  ]);
});

test('without a GPU its columns are left out and the reason is shown', () => {
  expect(page(cpu())).not.toContain('GPU utilization against the batch size');
  expect(page(cpu())).not.toContain('<section id="variants"');
  const machine = words(textOf(cpu(), 2, 120));
  expect(machine).toMatch(
    /not shown: GPU memory, all; GPU utilization.*, because the engine runs on the CPU/,
  );
});

test('a utilization over 100 % is marked as invalid', () => {
  const benchDocument = testBench();
  benchDocument.data.variants[0]!.points[0]!.model_utilization.decode_mbu = figure(1.2, 'share', 'test');
  expect(pageWords(benchDocument)).toContain('120 % (invalid)');
});

test.each([80, 120])(
  'text fits %d columns on every level, the summary of one variant to 30 lines',
  (width) => {
    for (const benchDocument of [testBench(), oneVariant(), cpu()])
      for (const level of [1, 2] as Level[]) {
        const lines = textOf(benchDocument, level, width).split('\n');
        expect(lines.filter((line) => [...line].length > width)).toEqual([]);
        if (level === 1)
          expect(lines.length).toBeLessThanOrEqual(benchDocument.data.variants.length > 1 ? 40 : 30);
      }
  },
);

test('wide intervals remove columns instead of overflowing the width', () => {
  const benchDocument = oneVariant();
  for (const { latency } of benchDocument.data.variants[0]!.points)
    for (const distribution of Object.values(latency))
      if ('p50' in distribution)
        Object.assign(distribution, { ci95: [-4 * distribution.mean, 6 * distribution.mean] });
  const lines = textOf(benchDocument, 1).split('\n');
  expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
});

test('a benchmark without any measurement says so on page and terminal', () => {
  const benchDocument = oneVariant();
  benchDocument.data.session.status = 'interrupted';
  benchDocument.data.answers = [];
  Object.assign(benchDocument.data.variants[0]!, { answers: [], fits: [], points: [], flags: [] });
  for (const text of [pageWords(benchDocument), words(textOf(benchDocument, 1))]) {
    expect(text).toContain('0 of 0 points were measured');
    expect(text).toContain('the benchmark did not finish');
  }
});

test('the page has every chart with a key and a table behind it, in display order', () => {
  const html = page(testBench());
  const ids = [...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id);
  const order = 'points answers batch sequence variants spread machine efficiency telemetry environment';
  expect(ids).toEqual([...order.split(' '), 'definitions']);
  const figures = html.split('<figure>').slice(1);
  expect(figures).toHaveLength(2 + 2 + 3 + 3 + 5 + 1);
  for (const part of figures) expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  // Each chart has two lines with symbols, except variants and repeats, which use only colors for bars and boxes.
  expect(html.match(/class="line-key"/g)).toHaveLength(2 * (2 + 2 + 5));
  expect(html.match(/class="swatch"/g)).toHaveLength(2 * (3 + 3));
});

test('samples of eight GPUs for an hour stay a small page', () => {
  const benchDocument = testBench();
  const points = Array.from({ length: 3000 }, (_, i): [number, number] => [i * 1200.123456, Math.sin(i)]);
  benchDocument.data.telemetry = Array.from({ length: 64 }, (_, i) => ({
    scope: `gpu${i % 8}`,
    metric: `m${Math.floor(i / 8)}`,
    unit: 'W',
    points,
  }));
  expect(page(benchDocument).length).toBeLessThan(1.3e6);
});

test('names from files stay text and cannot control the terminal; the page loads nothing from outside', () => {
  const benchDocument = testBench();
  benchDocument.data.session.title = hostileText;
  benchDocument.data.variants[0]!.label = hostileText;
  benchDocument.data.engine.model = `evil\u001B[2Jname`;
  benchDocument.data.variants[0]!.points[0]!.text = 'bad\u001B]0;title\u0007';
  const html = page(benchDocument);
  // The data of each chart, the document, and the script.
  expect(html.match(/<script/g)).toHaveLength(html.match(/data-chart=/g)!.length + 2);
  expect(html).not.toContain('<img');
  expect(html).not.toMatch(/(?:src|href)="(?!#|data:)/);
  const data = /<script type="application\/json" id="profile-data">(.*?)<\/script>/s.exec(html)?.[1];
  expect(JSON.parse(data ?? '')).toEqual(JSON.parse(JSON.stringify(benchDocument)));
  for (const control of ['\u001B', '\u0007']) expect(textOf(benchDocument, 2)).not.toContain(control);
});
