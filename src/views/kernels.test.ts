import { expect, test } from 'vitest';
import type { KernelsResult } from '../model/documents/kernels.js';
import { figure } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { rawValue } from '../render/value.js';
import { optionOf } from '../render/charts/option.js';
import { themes } from '../render/palette.js';
import { kernelResult, kernelsDocument } from './test-kernels.js';
import type { Block, Level, Table } from './block.js';
import { mapChart, casesWithFlops, rooflineChart } from './kernels-series.js';
import { kernelsView } from './kernels.js';

const viewOf = (change: Partial<KernelsResult> = {}) => kernelsView(kernelsDocument(change));
const isTable = (block: Block): block is Block & Table => block.type === 'table';
const tables = (id: string, change: Partial<KernelsResult> = {}) =>
  viewOf(change)
    .sections.find((section) => section.id === id)!
    .blocks.filter((block) => isTable(block));
const rows = (table: Table | undefined) => table!.rows.map(({ cells }) => cells.map(rawValue));
const linesOf = (change: Partial<KernelsResult>, width: number, level: Level = 1) =>
  terminalView(viewOf(change), { width, level }).split('\n');

test('operations show time, interval, rate, share, bound; those without a figure show the reason', () => {
  const [time, work, spread] = tables('cases');
  expect(rows(time).slice(0, 2)).toEqual([
    // 196 ns over a mean of 98 000.
    ['gemm 8×28672×4096', 'GEMM', 98_086, 196 / 98_000, 2.4e12, 0.5, 'memory'],
    [
      'attention flash 8×1, context 2048, 32/8 heads × 128',
      'attention',
      98_086,
      196 / 98_000,
      19.157e12,
      null,
      'latency',
    ],
  ]);
  expect(time!.rows.map(({ level }) => level)).toEqual([1, 1, 3]);
  expect(rows(work)[0]).toEqual([
    'gemm 8×28672×4096',
    235_405_312,
    1_879_048_192,
    2.4e12,
    19.157e12,
    2e-3,
    'measured',
  ]);
  expect(rows(spread)[0]!.slice(1, 8)).toEqual([100, 98_000, 1000, 97_000, 97_100, 99_500, 101_000]);
  const text = linesOf({}, 80).join(' ').replaceAll(/\s+/g, ' ');
  expect(text).toContain('softmax bfloat16 1×2: out of memory: It needs at least 300.0 GiB');
  expect(text).toMatch(/2 of 2 cases launched as a CUDA graph/);
  expect(text).toContain('4.30 TB/s, bfloat16 780 TFLOP/s');
});

test('a CPU shows the cache level that fits a working set', () => {
  const { roofs } = kernelsDocument().data;
  const levels = [{ level: 'L3', low_bytes_per_s: 20e9, high_bytes_per_s: 40e9 }];
  const change = { cases: [kernelResult({ roof_level: 'L3' })], roofs: { ...roofs, levels } };
  expect(rows(tables('cases', change)[0])[0]!.at(-1)).toBe('memory (L3)');
  expect(linesOf(change, 80).join('\n')).toContain('L3 20.0 GB/s to 40.0 GB/s');
});

const name = 'cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0';
const part = { class: 'gemm' as const, count: 1 };
const traced = {
  cases: [
    kernelResult({
      executed: [
        { ...part, what: 'kernel' as const, name, ns: 52_300 },
        { ...part, what: 'kernel' as const, name: 'reduce_kernel', ns: 1500, count: 2 },
        { ...part, what: 'operator' as const, name: 'aten::mm', ns: 9000 },
      ],
    }),
  ],
};

test('a traced case shows its kernels by time, and its operators on the page', () => {
  const [executed] = tables('behind', traced);
  expect(executed!.rows.map(({ level, cells }) => [level, ...cells.slice(2).map(rawValue)])).toEqual([
    [1, name, 'GEMM', 1, 52_300],
    [1, 'reduce_kernel', 'GEMM', 2, 1500],
    [3, 'aten::mm', 'GEMM', 1, 9000],
  ]);
});

const op = { count: 32, case: null, reason: null, flops: 1, bytes: 1, total_ns: null, roof_ns: null };
const stepped: Partial<KernelsResult> = {
  model: { name: 'moe', dtype: 'bfloat16' },
  steps: [
    {
      phase: 'decode',
      batch_size: 8,
      new_tokens: 1,
      context_tokens: 2048,
      ops: [
        { ...op, name: 'rotary', total_ns: 1e5, roof_ns: 1e4 },
        { ...op, name: 'gate_up_proj', case: 'linear', total_ns: 9e5, roof_ns: 8.1e5 },
        { ...op, name: 'router_topk', reason: 'the suite has no such kernel' },
      ],
      measured_ns: figure(1e6, 'ns', 'Σ'),
      roof_ns: figure(8.2e5, 'ns', 'Σ'),
      measured_ops: 64,
      missing_ops: 32,
    },
  ],
};

test('a step shows its sum, its operations by time, and missing operations', () => {
  const [steps, operations] = tables('steps', stepped);
  expect(rows(steps)).toEqual([['decode, batch 8, context 2048', 1e6, 8.2e5, 0.82, '64/96']]);
  expect(rows(operations)).toEqual([
    ['gate_up_proj', 32, 28_125, 9e5, 0.9, 8.1e5, 0.9, 'linear'],
    ['rotary', 32, 3125, 1e5, 0.1, 1e4, 0.1, null],
    ['router_topk', 32, null, null, null, null, null, null],
  ]);
  const text = linesOf(stepped, 80).join('\n');
  expect(text).toMatch(/decode, batch 8, context 2048 +1\.00 ms/);
  expect(text).toContain('router_topk: the suite has no such kernel');
});

test.each([
  ['cases', {}],
  ['traced', traced],
  ['a model', stepped],
  ['many', { cases: Array.from({ length: 60 }, () => kernelResult()) }],
])('%s: at most 30 lines, of 80 or 120 columns, on every level', (_, change) => {
  expect(linesOf(change, 80).length).toBeLessThanOrEqual(30);
  for (const width of [80, 120])
    for (const level of [1, 2] as const)
      expect(linesOf(change, width, level).filter((line) => [...line].length > width)).toEqual([]);
});

test('the page has charts with their key and tables, and escapes texts', () => {
  const odd = kernelResult({ case: '<b>', backend: '<script>', outcome: 'wrong', text: '<i>off</i>' });
  const view = viewOf({ cases: [...kernelsDocument().data.cases, odd] });
  const html = pageOfView(view, { clientScript: '' });
  for (const chart of ['roofline', 'heat']) expect(html).toContain(`data-chart="${chart}"`);
  expect(html.match(/Table behind this chart/g)).toHaveLength(2);
  expect(html.match(/class="swatch"/g)).toHaveLength(2);
  expect(html).toContain('wrong result: &lt;i&gt;off&lt;/i&gt;');
  expect(html).not.toContain('<i>off');
  expect(html).not.toContain('<script>off');
});

test('a model name with escape sequences cannot control the terminal', () => {
  const text = terminalView(viewOf({ model: { name: 'moe \u001B]0;x\u0007 end', dtype: 'x' } }), {
    width: 80,
  });
  for (const control of ['\u001B', '\u0007']) expect(text).not.toContain(control);
});

test('charts have points for known intensity and rate; a cell without a figure shows why', () => {
  const { data } = kernelsDocument();
  expect(casesWithFlops(data).map(({ kernel }) => kernel)).toEqual(['gemm', 'attention']);
  for (const theme of [themes.light, themes.dark]) {
    const roofline = optionOf(rooflineChart(data), { theme, width: 900 });
    const series = roofline.series as { type: string; data: { value: number[] }[] }[];
    expect(series.find(({ type }) => type === 'scatter')!.data.map(({ value }) => value)).toEqual([
      [7.98, 19.157e12],
      [7.98, 19.157e12],
    ]);
    // The slope ends where bandwidth reaches the peak: 780e12 / 4.3e12.
    expect(series[0]!.data.at(-1)).toEqual([780 / 4.3, 780e12]);
    const map = optionOf(mapChart(data, data.maps[0]!), { theme, width: 900 });
    expect((map.series as { data: number[][] }[])[0]!.data).toEqual([
      [0, 0],
      [1, 1],
    ]);
  }
});
