import { expect, test } from 'vitest';
import type { Gemm } from '../../model/documents/gemms.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { gpuRoofs } from '../roofs.js';
import { gemmRoof } from './roof.js';
import { alignmentFaults, flopOf } from './shape.js';
import { tiling } from './tiling.js';
import { flatRows, ridgeRows, waveRows, whatIfs } from './what-if.js';

/** H200: 989 TFLOP/s in float16, 67 in float32, 4.8 TB/s (data sheet). */
const roofs = gpuRoofs('NVIDIA H200', null);
const sms = figure(132, 'SMs', 'data sheet');

function gemm(m: number, n: number, k: number, ns: number | null, tile = '128x128', dtype = 'float16'): Gemm {
  const shape = { m, n, k, batch: 1 };
  const time: Figure = ns === null ? missing('no_time', 'no time') : figure(ns, 'ns', 'test', { n: 1 });
  const none = missing('no_values', 'not needed here');
  const tiles = tiling(shape, tile, 1, 1, sms);
  return {
    source: 'profiler',
    execution_id: 'e',
    capture_id: 'c',
    ...shape,
    dtype,
    compute_type: null,
    layout: null,
    calls: 1,
    made_by: [],
    stages: [],
    flop: flopOf(shape),
    arithmetic_intensity: none,
    total_time_ns: time,
    achieved_flops: none,
    peak_share: none,
    tilings: tiles ? [tiles] : [],
    alignment_faults: alignmentFaults(shape, dtype),
    roof: gemmRoof(shape, dtype, time, roofs),
  };
}

test('the roof of a GEMM is the longer of arithmetic and traffic', () => {
  // A decode step's 4096 × 4096: weights of 33.6 MB at 4.8 TB/s.
  const decode = gemm(1, 4096, 4096, 10_000);
  const bytes = 2 * (4096 + 4096 * 4096 + 4096);
  expect(decode.roof).toMatchObject({ bound: 'memory', from: 'sheet' });
  expect(decode.roof!.time_ns.value).toBeCloseTo(bytes / 4800, 6);
  expect(decode.roof!.share.value).toBeCloseTo(bytes / 4800 / 10_000, 9);
  const prefill = gemm(8192, 8192, 8192, null);
  expect(prefill.roof!.bound).toBe('compute');
  expect(prefill.roof!.time_ns.value).toBeCloseTo((2 * 8192 ** 3) / 989e3, 3);
  expect(prefill.roof!.share.value).toBeNull();
});

test('finds the rows at the ridge point, where arithmetic and traffic take equally long', () => {
  const roof = { peak: 989e12, bandwidth: 4.8e12, elementSize: 2 };
  const rows = ridgeRows({ n: 4096, k: 4096 }, roof);
  const ratio = (m: number) =>
    (2 * m * 4096 * 4096) / roof.peak / ((2 * (m * 4096 + 4096 * 4096 + m * 4096)) / roof.bandwidth);
  expect(ratio(rows)).toBeLessThanOrEqual(1);
  expect(ratio(rows + 1)).toBeGreaterThan(1);
  // 128 output features of 512: 2NK = 131 072 < r·b·(K + N) = 263 733.
  expect(ridgeRows({ n: 128, k: 512 }, roof)).toBe(Infinity);
});

test('finds the rows that a decode GEMM can add for 5 % more traffic, at most up to the ridge point', () => {
  const decode = gemm(1, 4096, 4096, 10_000);
  // 0.05 × (2 × 4096 + 4096²) / 8192 = 102.45
  expect(flatRows(decode)).toBe(103);
  const [rows] = whatIfs(decode, [decode], sms, roofs);
  expect(rows).toMatchObject({ change: 'rows', m: 103, n: 4096, k: 4096 });
  const bytes = (m: number) => m * 4096 + 4096 * 4096 + m * 4096;
  expect(rows!.time_ratio.value).toBeCloseTo(bytes(103) / bytes(1), 12);
  expect(rows!.rate_ratio.value).toBeCloseTo((103 * bytes(1)) / bytes(103), 9);
});

test('a compute-bound GEMM can add rows until its last wave is full', () => {
  // 32 × 5 tiles of 128 × 128 on 132 SMs are 160 tiles, 1.21 waves. Two full waves have 8 rows of tiles.
  const computeBound = gemm(640, 4096, 8192, 60_000);
  expect(computeBound.roof!.bound).toBe('compute');
  expect(computeBound.tilings[0]!.tiles.value).toBe(160);
  expect(waveRows(computeBound, sms)).toBe(8 * 128);
  const [rows] = whatIfs(computeBound, [computeBound], sms, roofs);
  expect(rows).toMatchObject({ change: 'rows', m: 1024 });
  expect(rows!.time_ratio.value).toBe(1);
  expect(rows!.rate_ratio.value).toBeCloseTo(1.6, 12);
  // 8 rows of tiles fill 256 of 264 places, so there is no gain.
  const full = gemm(1024, 4096, 8192, 60_000);
  expect(whatIfs(full, [full], sms, roofs)).toEqual([]);
});

test('a misaligned GEMM is expected to reach the roof share of aligned ones with similar rows', () => {
  // The roof of 512 × 4097 × 4096 is 17.4 µs of arithmetic. It takes 100 µs; aligned GEMMs reach 60 %.
  const odd = gemm(512, 4097, 4096, 100_000);
  expect(odd.alignment_faults).toHaveLength(1);
  const aligned = [4096, 4104, 8192].map((n) => {
    const ns = (2 * 512 * n * 4096) / 989e3;
    return gemm(512, n, 4096, ns / 0.6);
  });
  const change = whatIfs(odd, [odd, ...aligned], sms, roofs).find((option) => option.change === 'align')!;
  expect(change).toMatchObject({ m: 512, n: 4104, k: 4096 });
  const predicted = (2 * 512 * 4104 * 4096) / 989e3 / 0.6;
  expect(change.time_ratio.value).toBeCloseTo(predicted / 100_000, 9);
  expect(change.text).toContain('N 4097 → 4104');
  // Without an aligned GEMM the size is reported, but no gain.
  const unpaired = whatIfs(odd, [odd], sms, roofs).find((option) => option.change === 'align')!;
  expect(unpaired.rate_ratio.value).toBeNull();
});

test('finds output features that fill their last tile only partly', () => {
  const partial = gemm(4096, 160, 4096, 50_000);
  const change = whatIfs(partial, [partial], sms, roofs).find((whatIf) => whatIf.change === 'fill_n')!;
  expect(change).toMatchObject({ n: 256 });
  expect(change.rate_ratio.value).toBeCloseTo(1.6, 12);
  expect(change.text).toContain('38 % of its tiles unused');
});

test('an unknown GPU has no roof and no predictions for other sizes', () => {
  const unknown = gpuRoofs('NVIDIA Nobody', null);
  const decode = gemm(1, 4096, 4096, 10_000);
  expect(gemmRoof(decode, 'float16', figure(1, 'ns', 'test'), unknown).share.value).toBeNull();
  expect(whatIfs(decode, [decode], sms, unknown)).toEqual([]);
});
