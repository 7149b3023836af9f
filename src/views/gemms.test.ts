import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { Gemm } from '../model/documents/gemms.js';
import { figure, missing } from '../model/figure.js';
import { terminalView } from '../render/terminal/view.js';
import { pageOfView } from '../render/html/view.js';
import { rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import type { Block, Table } from './block.js';
import { oncePerShape } from './gemm-rows.js';
import { gemmsView } from './gemms.js';

const none = missing('not_measured', 'a log has no times');
const gemm = (source: Gemm['source'], n: number, more: Partial<Gemm> = {}): Gemm => ({
  source,
  execution_id: 'profiled',
  capture_id: source,
  m: 1,
  n,
  k: 2048,
  batch: 1,
  dtype: 'float16',
  compute_type: null,
  layout: null,
  calls: 396,
  made_by: [],
  stages: [],
  flop: 2 * n * 2048,
  arithmetic_intensity: none,
  total_time_ns: none,
  achieved_flops: none,
  peak_share: none,
  tilings: [],
  alignment_faults: [],
  ...more,
});
const timed = gemm('profiler', 256, {
  stages: ['decode'],
  arithmetic_intensity: figure(1, 'FLOP/byte', 'hand'),
  total_time_ns: figure(396e3, 'ns', 'hand'),
  achieved_flops: figure(2 * 256 * 2048 * 1e6, 'FLOP/s', 'hand'),
  peak_share: figure(0.00031, 'ratio', 'hand'),
  tilings: [
    {
      tile: '64x8',
      calls: 396,
      tiles: figure(32, '', 'hand'),
      tile_efficiency: figure(0.5, 'ratio', 'hand'),
      waves: figure(0.25, '', 'hand'),
      wave_efficiency: figure(0.25, 'ratio', 'hand'),
    },
  ],
  roof: { time_ns: none, share: figure(0.2, 'ratio', 'hand'), bound: 'memory', from: 'measured' },
});

const view = (gemms: Gemm[], top?: number) =>
  gemmsView(document('gemms', '1.1', { gpu: 'NVIDIA H200', sm_count: none, gemms }), top);
const tablesOf = (blocks: readonly Block[]) =>
  blocks.filter((block): block is Block & Table => block.type === 'table');
const rows = (gemms: Gemm[], top?: number) =>
  tablesOf(view(gemms, top).lead).map(({ columns, rows: all }) =>
    all.map(({ cells }) =>
      Object.fromEntries(columns.map(({ id }, index) => [id, rawValue(cells[index] ?? '')])),
    ),
  );

test('a shape in several sources is kept once, from the source with the most information', () => {
  const all = [
    gemm('cublas-log', 5632),
    gemm('cublaslt-log', 5632),
    gemm('cublas-log', 2048),
    gemm('cublaslt-log', 256),
    gemm('profiler', 256),
  ];
  const { rows: distinct, leftOut } = oncePerShape(all);
  expect(distinct.map(({ source, n }) => [source, n])).toEqual([
    ['cublaslt-log', 5632],
    ['cublas-log', 2048],
    ['profiler', 256],
  ]);
  expect(leftOut).toEqual([
    ['cublaslt-log', 1],
    ['cublas-log', 1],
  ]);
});

test('has a row per shape; bytes moved per second and the used share are computed from its figures', () => {
  const [table] = rows([timed]);
  expect(table).toMatchObject([
    {
      shape: '1×256×2048',
      stages: 'decode step',
      calls: 396,
      total_ns: 396e3,
      moved_bytes_per_s: 2 * 256 * 2048 * 1e6,
      peak_share: 0.00031,
      roof_share: 0.2,
      tile: '64x8',
      used: 0.125,
    },
  ]);
  const text = terminalView(view([timed]), { width: 200, level: 2 });
  expect(text).toContain('0.031 %');
});

test('types and sources are columns if they differ, else they are in the title', () => {
  expect(view([timed]).title).toBe('NVIDIA H200 · float16 · profiler');
  expect(rows([timed])[0]![0]).not.toHaveProperty('dtype');
  const mixed = [timed, gemm('log', 8, { dtype: 'float32' })];
  expect(rows(mixed)[0]).toMatchObject([
    { dtype: 'float16', source: 'profiler' },
    { dtype: 'float32', source: 'log' },
  ]);
  // A source without a row of its own is not in the table.
  const twice = [timed, gemm('cublas-log', 256)];
  expect(view(twice).title).toBe('NVIDIA H200 · float16 · profiler');
  expect(rows(twice)[0]![0]).not.toHaveProperty('source');
});

test('the capture is a column if several of one source have shapes, as the ranks of a job', () => {
  expect(rows([timed])[0]![0]).not.toHaveProperty('capture');
  const ranks = ['rank-0', 'rank-1'].map((rank) => ({ ...timed, capture_id: `${rank}-torch-profiler` }));
  expect(rows(ranks)[0]).toMatchObject([{ capture: 'rank-0' }, { capture: 'rank-1' }]);
});

test('logs show the algorithms and why there is no time; --limit cuts the table', () => {
  const logged = [8, 16, 24].map((n) =>
    gemm('log', n, { layout: 'TN', compute_type: 'COMPUTE_32F', made_by: [{ name: 'algo 66', calls: 1 }] }),
  );
  const [shapes, algorithms] = rows(logged, 2);
  expect(shapes).toHaveLength(2);
  expect(algorithms![0]).toEqual({
    shape: '1×8×2048',
    layout: 'TN',
    compute_type: 'COMPUTE_32F',
    algorithm: 'algo 66',
  });
  const text = terminalView(view(logged, 2), { width: 80, level: 2 });
  expect(text).toContain('a log has no times');
  expect(text).toContain('… and 1 more (gemm --limit N)');
});

test.each([80, 120])('lines fit %i columns; hostile names cannot inject anything', (width) => {
  const hostile = { ...timed, made_by: [{ name: hostileText, calls: 1 }], alignment_faults: [hostileText] };
  const shown = view([hostile, gemm('log', 8, { layout: 'TN', made_by: hostile.made_by })]);
  for (const line of terminalView(shown, { width, level: 2 }).split('\n'))
    expect([...line].length, line).toBeLessThanOrEqual(width);
  expect(pageOfView(shown, { clientScript: '' })).not.toContain('<img');
});
