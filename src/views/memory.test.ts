import type { EChartsOption } from 'echarts';
import { expect, test } from 'vitest';
import { memoryResultDocumentSchema, type MemoryResult } from '../model/documents/memory-result.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { optionOf } from '../render/charts/option.js';
import { placedBars } from '../render/charts/waterfall.js';
import { themes } from '../render/palette.js';
import { testExplain } from './test-explain.js';
import { testMemory } from './test-memory.js';
import { hostileText } from './test-profile.js';
import type { Block, Level, Table, View } from './block.js';
import type { Chart } from './chart.js';
import { stackChart } from './memory-charts.js';
import { engineText } from './memory-run.js';
import { memoryView } from './memory.js';

const memory = testMemory();
const view = memoryView(memory);
const viewWith = (change: (data: MemoryResult) => void): View => {
  const copy = structuredClone(memory);
  change(copy.data);
  return memoryView(copy);
};
const tables = (shownView: View, id: string): Table[] =>
  shownView.sections
    .find((section) => section.id === id)!
    .blocks.map((block) => (block.type === 'chart' ? block.behind : block))
    .filter((block): block is Block & Table => block.type === 'table');
/** Cells by column id of the rows that start with a label. */
const cells = (table: Table, label: string) =>
  table.rows
    .filter(({ cells: [first] }) => rawValue(first!) === label)
    .map(({ cells: all }) =>
      Object.fromEntries(table.columns.map(({ id }, index) => [id, rawValue(all[index]!)])),
    );
const leadText = (shownView: View): string =>
  shownView.lead
    .flatMap((block) => (block.type === 'facts' ? block.items : []))
    .map(({ name, text }) => `${name}: ${plainText(text).replaceAll('\u00a0', ' ')}`)
    .join('\n');

test('shows the peak with the used share of the GPUs, latency, and the largest components', () => {
  expect(memoryResultDocumentSchema.parse(memory)).toEqual(memory);
  expect(leadText(view).split('\n')).toEqual([
    'peak: 21.00 GB of 160.0 GB (13 %) in use',
    'latency: 4.00 s · 128 tok/s · TTFT 200 ms · TPOT 29.9 ms · mean of 3 runs',
    'largest: weights 14.00 GB (70 %), KV cache 2.500 GB (13 %), activations 2.000 GB (10 %)',
  ]);
});

test('has components with estimate and residual, points, GPUs, fragmentation, allocations', () => {
  const [, components] = tables(view, 'breakdown');
  // The estimate is 13.48 GB: 3.7 % less.
  expect(cells(components!, 'weights')).toEqual([
    {
      component: 'weights',
      memory_gb: 14,
      share: 0.7,
      confidence: 'high',
      estimate_gb: 13.48,
      off_share: expect.closeTo(-0.52 / 14, 9) as number,
    },
  ]);
  expect(cells(components!, 'residual')).toMatchObject([{ memory_gb: -0.5, share: -0.025, estimate_gb: '' }]);
  // A component from a formula is not compared with the estimate.
  const formula = viewWith(({ profile }) => {
    for (const component of profile.memory_breakdown!.components!) component.basis = 'formula';
  });
  expect(cells(tables(formula, 'breakdown')[1]!, 'weights')).toMatchObject([
    { memory_gb: 14, estimate_gb: 13.48, off_share: 'by formula' },
  ]);
  const [points, increases] = tables(view, 'points');
  expect(cells(points!, 'peak')).toEqual([
    { point: 'peak', total_gb: 21, max_gb: 11, mean_gb: 10.5, stddev_gb: 0.5, t_s: 7, source: 'NVML device' },
  ]);
  expect(cells(increases!, 'peak − baseline')).toMatchObject([{ memory_gb: 20 }]);
  expect(cells(tables(view, 'gpus')[0]!, 'GPU 1 · NVIDIA H100')).toEqual([
    {
      gpu: 'GPU 1 · NVIDIA H100',
      baseline_gb: 0.5,
      post_warmup_gb: 9.5,
      peak_gb: 11,
      total_gb: 80,
      used_share: 11 / 80,
    },
  ]);
  expect(cells(tables(view, 'allocator')[0]!, 'after warm-up')).toMatchObject([
    {
      model_weights_gb: 7,
      kv_cache_gb: 1.25,
      activations_gb: 0.25,
      allocator_reserve_gb: 0.5,
      reserved_gb: 9,
    },
  ]);
  expect(cells(tables(view, 'fragmentation').at(-1)!, 'GPU 0')).toMatchObject([
    { unused_gb: 1, unused_share: 0.1, inactive_split_gb: 0.25 },
  ]);
  expect(tables(view, 'allocations')[0]!.rows[0]!.cells.slice(2).map(rawValue)).toEqual([1.5, 32]);
  expect(cells(tables(view, 'environment')[0]!, 'KV heads')).toEqual([
    { name: 'KV heads', value: 32, source: 'flag' },
  ]);
});

test("a missing value has the profile's reason; a shared GPU is reported", () => {
  expect(markdownView(view)).toContain('framework: the allocator does not report it separately');
  const oom = viewWith(({ profile }) => {
    profile.latency_stats.mean_latency_ms = null;
    Object.assign(profile.memory_measurements.peak, { total_gb: null, t_s: null, source: null });
    Object.assign(profile.missing, {
      latency_stats: 'out of memory',
      'memory_measurements.peak': 'not reached',
    });
    profile.metadata.issues.push({ code: 'gpu_shared', text: 'gpu0 was shared.' });
  });
  expect(leadText(oom)).toContain('peak: not measured: not reached\nlatency: not measured: out of memory');
  expect(tables(oom, 'points')[0]!.rows[2]!.cells[1]).toEqual({ missing: 'not reached' });
  expect(tables(oom, 'points')[1]!.title).toContain('by all processes');
});

test.each([
  [1, 80],
  [2, 80],
  [2, 120],
] as const)('level %i fits %i columns', (level: Level, width) => {
  for (const candidate of [
    view,
    viewWith(({ profile }) => {
      for (const part of profile.memory_breakdown.components) {
        part.bytes *= 100;
        part.gb *= 100;
      }
    }),
  ])
    for (const line of terminalView(candidate, { width, level }).split('\n'))
      expect([...line].length, line).toBeLessThanOrEqual(width);
});

test('the summary fits 30 lines with its findings, without waterfall or sentences about time', () => {
  const explain = testExplain();
  const text = terminalView(memoryView({ ...memory, issues: [] }), { width: 80, explain });
  expect(text.split('\n').length).toBeLessThanOrEqual(30);
  const page = pageOfView(view, { clientScript: '', explain });
  expect(page).toContain('<section id="findings"');
  expect(page).not.toContain('<section id="waterfall"');
  for (const sentence of explain.data.sentences) expect(text).not.toContain(sentence.slice(0, 30));
});

test('the page has its charts, names from files are inert, and absent data has no section', () => {
  const hostile = viewWith(({ profile }) => (profile.model_info.name = hostileText));
  const page = pageOfView(hostile, { clientScript: '' });
  const charts = [...page.matchAll(/data-chart="(\w+)"/g)].map(([, form]) => form);
  expect(charts).toEqual(['waterfall', 'lines', 'lines', 'lines', 'lines', 'lines', 'waterfall']);
  expect(page.replaceAll(/<script type="application\/json"[^]*?<\/script>/g, '')).not.toContain(hostileText);
  const withoutAllocator = viewWith((data) => {
    Object.assign(data, { allocator: [], fragmentation: [], allocations: null });
    data.timeline.series = [];
  });
  expect(withoutAllocator.sections.map(({ id }) => id)).toEqual([
    'breakdown',
    'points',
    'gpus',
    'timeline',
    'environment',
    'definitions',
  ]);
  expect(withoutAllocator.sections[3]!.blocks).toMatchObject([{ type: 'missing' }]);
});

interface DrawnSeries {
  name: string;
  type: string;
  stack?: string;
  data: { value: [number, number] }[];
}
const series = (chart: Chart): DrawnSeries[] =>
  (optionOf(chart, { theme: themes.light, width: 900 }) as EChartsOption & { series: DrawnSeries[] }).series;

test('stacked components sum to reserved memory; marks are on the line of their own GPU', () => {
  const drawnSeries = series(stackChart(memory.data, 1));
  const stack = drawnSeries.filter((line) => line.stack === 'held');
  expect(stack.map(({ name }) => name)).toEqual(['weights', 'KV cache', 'activations', 'allocator reserve']);
  const sumAt = (index: number) => stack.reduce((sum, { data }) => sum + data[index]!.value[1], 0);
  expect([sumAt(0), sumAt(1), sumAt(2), sumAt(3)]).toEqual([0, 7.5, 9, 10]);
  const marks = drawnSeries.find(({ type }) => type === 'scatter')!.data;
  expect(marks.map(({ value }) => value)).toEqual([
    [0, 0.5],
    [6, 9.5],
    [7, 11],
  ]);
  // From the weights over each component, including the negative residual, to the measured total.
  const [parts] = view.sections.find(({ id }) => id === 'breakdown')!.blocks;
  const chart = parts?.type === 'chart' && parts.chart.form === 'waterfall' ? parts.chart : null;
  expect(placedBars(chart!).map(({ from, value }) => [from, value])).toEqual([
    [0, 14],
    [14, 2.5],
    [16.5, 2],
    [18.5, 2],
    [20, -0.5],
    [0, 20],
  ]);
});

test.each([
  ['host', 'transformers', '5.17.0', 'transformers 5.17.0'],
  ['url', 'vllm', '0.32.0', 'vllm 0.32.0 behind an OpenAI-compatible URL'],
  ['url', 'openai', null, 'a server behind an OpenAI-compatible URL'],
] as const)('%s, %s: names the engine and how it was queried', (where, engine_type, engine_version, text) => {
  const { metadata } = memory.data.profile;
  expect(
    engineText({ metadata: { ...metadata, where }, engine_metadata: { engine_type, engine_version } }),
  ).toBe(text);
});
