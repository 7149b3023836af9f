import { expect, test } from 'vitest';
import type { Gemm } from '../model/documents/gemms.js';
import { missing } from '../model/figure.js';
import { leftOutText, oncePerShape } from './gemm-rows.js';

const none = missing('not_told', 'not told');
const gemm = (source: Gemm['source'], n: number): Gemm => ({
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
});

test('a shape that several sources tell stands once, of the source that tells most', () => {
  const all = [
    gemm('cublas-log', 5632),
    gemm('cublaslt-log', 5632),
    gemm('cublas-log', 2048),
    gemm('cublaslt-log', 256),
    gemm('profiler', 256),
  ];
  const { rows, leftOut } = oncePerShape(all);
  expect(rows.map(({ source, n }) => [source, n])).toEqual([
    ['cublaslt-log', 5632],
    ['cublas-log', 2048],
    ['profiler', 256],
  ]);
  expect(leftOut).toEqual([
    ['cublaslt-log', 1],
    ['cublas-log', 1],
  ]);
  expect(leftOutText(leftOut)).toContain(
    '1 shape of the cuBLASLt log and 1 shape of the cuBLAS log left out',
  );
  expect(leftOutText([])).toBeNull();
});
