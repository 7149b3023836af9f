import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { KernelCounters } from '../model/documents/counters.js';
import { figure, missing } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import { counterBlocks } from './counters.js';

const none = missing('not_collected', 'the section was not collected');
const percent = (value: number) => figure(value, '%', 'ncu');

const kernel = (name: string, stage: string | null): KernelCounters => ({
  execution_id: 'profiled',
  capture_id: 'ncu',
  name,
  grid: '8,8,1',
  block: '128,1,1',
  device: 0,
  launches: 2,
  nvtx_paths: [],
  stage,
  duration_ns: figure(4160, 'ns', 'ncu'),
  total_duration_ns: figure(8320, 'ns', 'ncu'),
  bound: { by: 'latency', cause: 'grid_too_small', text: 'SM 6.1 % of peak' },
  sm_throughput: percent(6.1),
  memory_throughput: percent(4),
  dram_throughput: percent(3.1),
  l1_hit_rate: percent(0),
  l2_hit_rate: percent(50),
  occupancy: { achieved: percent(15), theoretical: percent(19), limits: [], limited_by: ['registers'] },
  registers_per_thread: figure(32, '', 'ncu'),
  shared_memory_per_block: figure(164_864, 'B', 'ncu'),
  waves: figure(0, '', 'ncu'),
  tensor_pipe: none,
  stalls: [{ reason: 'long_scoreboard', share: 0.42, cycles: null, meaning: 'waits for memory' }],
  stalls_missing: null,
  roofline: {
    flop: none,
    flop_by_unit: [],
    dram_bytes: none,
    arithmetic_intensity: figure(55.4, 'FLOP/byte', 'ncu'),
    achieved_flops: figure(8.07e12, 'FLOP/s', 'ncu'),
    peak_flops: none,
    peak_dram_bandwidth: none,
    roof_flops: figure(264e12, 'FLOP/s', 'ncu'),
    roof_share: figure(0.031, 'ratio', 'ncu'),
    roof_side: 'memory',
  },
});

const blocks = (kernels: KernelCounters[]) =>
  counterBlocks(document('counters', '1.0', { devices: [], kernels, launches: [], launches_total: 4 }));
const viewOf = (kernels: KernelCounters[]) => ({
  command: 'test',
  title: 'counters',
  document: document('counters', '1.0', {}),
  session: { id: null, started_at: '' },
  lead: blocks(kernels),
  sections: [],
});

test('has a row per kernel, decode first; a counter that was not collected has its reason', () => {
  const all = [kernel('other', null), kernel('prefill_kernel', 'prefill'), kernel('decode_kernel', 'decode')];
  const table = blocks(all).find((block) => block.type === 'table')!;
  const cells = table.rows.map(({ cells: rowCells }) =>
    Object.fromEntries(table.columns.map(({ id }, index) => [id, rawValue(rowCells[index] ?? '')])),
  );
  expect(cells.map((row) => row['kernel'])).toEqual(['decode_kernel', 'prefill_kernel', 'other']);
  expect(cells[0]).toEqual({
    kernel: 'decode_kernel',
    grid: '8,8,1',
    stage: 'decode',
    bound: 'latency',
    launches: 2,
    duration_ns: 4160,
    sm_percent: 6.1,
    memory_percent: 4,
    dram_percent: 3.1,
    l2_hit_percent: 50,
    occupancy_percent: 15,
    theoretical_occupancy_percent: 19,
    limited_by: 'registers',
    tensor_pipe_percent: null,
    waves: '<0.01',
    flop_per_byte: 55.4,
    roof_share: 0.031,
    stalls: 'long_scoreboard 42\u00a0%',
  });
  expect(terminalView(viewOf(all), { width: 80 })).toContain('the section was not collected');
});

test('rows of one kernel differ in their grids, at every width, and a heading names the grid once', () => {
  const kernels = ['8,8,1', '8,2,1'].map((grid) => ({ ...kernel('decode_kernel', 'decode'), grid }));
  const narrow = terminalView(viewOf(kernels), { width: 60 });
  for (const grid of ['8,8,1', '8,2,1'])
    expect(narrow).toMatch(new RegExp(String.raw`decode_kernel\s+${grid}\s`));
  const fold = blocks(kernels).find((block) => block.type === 'fold')!;
  const headings = fold.blocks.flatMap((block) => (block.type === 'heading' ? [plainText(block.text)] : []));
  expect(headings.map((text) => text.match(/grid/g)?.length)).toEqual([1, 1]);
});

test('details have every number that was collected of a kernel', () => {
  const fold = blocks([kernel('decode_kernel', 'decode')]).find((block) => block.type === 'fold')!;
  const facts = fold.blocks.flatMap((block) => (block.type === 'facts' ? block.items : []));
  const text = Object.fromEntries(
    facts.map(({ name, text: factText }) => [name, plainText(factText).replaceAll('\u00a0', ' ')]),
  );
  expect(text).toMatchObject({
    bound: 'latency: SM 6.1 % of peak',
    'hit rates': 'L1 0 % · L2 50 %',
    launch: 'registers per thread 32 · shared memory per block 161 KiB · waves of blocks <0.01',
    occupancy: '15 % of 19 % possible, limited by registers',
  });
  expect(text['roofline']).toMatch(/^8\.07 TFLOP\/s, 3\.1 % of the 264 TFLOP\/s that 55\.4 FLOP per byte/);
  expect(text['stalls']).toMatch(/^long_scoreboard 42 %/);
});

test.each([80, 120])('lines fit %i columns; hostile names cannot inject anything', (width) => {
  const view = viewOf([kernel(hostileText, hostileText)]);
  for (const line of terminalView(view, { width, level: 2 }).split('\n'))
    expect([...line].length, line).toBeLessThanOrEqual(width);
  expect(pageOfView(view, { clientScript: '' })).not.toContain('<img');
});
