import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { PredictResult, PredictStage } from '../model/documents/predict.js';
import { figure } from '../model/figure.js';
import { terminalView } from '../render/terminal/view.js';
import { predictView } from './predict.js';

const ms = (value: number) => figure(value, 'ms', 'test');
const stage: PredictStage = {
  phase: 'prefill',
  batch_size: 32,
  input_len: 2048,
  output_len: 32,
  launch: 'graph',
  fusion: 'none',
  kernels: 1056,
  flops: 1e15,
  bytes: 1e11,
  bound: 'compute',
  roofline_ms: ms(961),
  roofline_serial_ms: ms(1036),
  launched_ms: ms(1036),
  launched_range_ms: [990, 2900],
  predicted_ms: ms(1483),
  predicted_error: 1.44,
  device_ms: ms(1483),
  host_ms: ms(10),
  beyond_table_share: 0.2,
  limited_by: 'device',
  ops: [
    {
      op: 'gate_up_proj',
      class: 'gemm',
      kernel: 'gemm',
      params: { m: 1, n: 2, k: 3 },
      count: 32,
      kernels: 32,
      roofline_us: 100,
      predicted_us: 200,
      method: 'extrapolated',
    },
  ],
  measured: [
    {
      session: 's',
      what: 'mode=cudagraph b32-p2048-o32 with a label that is longer than what is left of the line',
      ms: ms(1200),
      roofline_ratio: figure(961 / 1200, 'ratio', 'test'),
      table_ratio: figure(1483 / 1200, 'ratio', 'test'),
      launched_ratio: figure(1036 / 1200, 'ratio', 'test'),
      above_measurement: false,
      residual: [{ cause: 'gemm', ms: -283, text: 'shorter' }],
    },
  ],
};
const result: PredictResult = {
  model: { name: 'llama-3.1-8b', family: 'Llama', layers: 32, parameters: 8e9 },
  dtype: 'bfloat16',
  weight_format: 'bfloat16',
  device: {
    kind: 'gpu',
    name: 'NVIDIA H200',
    roofs: 'measured',
    peak_flops_per_s: figure(989e12, 'FLOP/s', 'test'),
    bandwidth_bytes_per_s: figure(4.8e12, 'B/s', 'test'),
    launch_ns: ms(1),
    graph_node_ns: ms(1),
  },
  table: {
    sessions: ['20261121-100312-kernels'],
    cases: 66,
    validation: [
      {
        kernel: 'attention',
        cases: 8,
        median_error: 0.6,
        worst_error: 2.25,
        worst_case: 'attention bfloat16 32x32x8x128x2048x2048',
      },
    ],
  },
  assumptions: [{ id: 'fusion', text: 'nothing is fused' }],
  not_modeled: ['paged KV cache'],
  stages: [stage, { ...stage, phase: 'decode' }],
  calibration: {
    status: 'recorded',
    low_ratio: 0.96,
    high_ratio: 2.8,
    stages: 35,
    source: 'recorded stages',
  },
  error: {
    predicted_by: 'table',
    stages: 2,
    median: 0.24,
    worst: 0.24,
    decode_median: 0.24,
    decode_worst: 0.24,
  },
};

const textOf = (data: PredictResult, width = 80) =>
  terminalView(predictView(document('predict', '1.2', data)), { width });

test('fits 80 columns, with doubts and the unexplained difference', () => {
  const text = textOf(result);
  for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
  expect(text).toContain('1.48 s ~');
  expect(text).toContain('measured − predicted: GEMM −283 ms');
  expect(text).toContain('1.24×');
  expect(text).toContain('paged KV cache');
});

test('shows the output length if stages of one prompt length differ in it', () => {
  expect(textOf(result)).not.toContain('output');
  const text = textOf({ ...result, stages: [stage, { ...stage, output_len: 64 }] }, 90);
  expect(text).toMatch(/batch +prompt +output/);
  expect(text).toMatch(/prefill +32 +2 048 +64/);
});

test('no two columns of a table have the same name', () => {
  for (const { blocks } of predictView(document('predict', '1.2', result)).sections)
    for (const block of blocks)
      if (block.type === 'table') {
        const heads = block.columns.map(({ head }) => head);
        expect(new Set(heads).size).toBe(heads.length);
      }
});

test('without a kernel table: predicted, measured, ratio and the interval of recorded stages, in 80 columns', () => {
  const text = textOf({ ...result, table: null });
  for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
  // 1036 of 1200 ms.
  expect(text).toMatch(/prefill +32 +2 048 +1\.20 s +1\.04 s +0\.863×/);
  expect(text).toContain('1.0 to 2.9 s');
  const unknown = { ...stage, launched_range_ms: null };
  const calibration = {
    status: 'not_calibrated',
    low_ratio: null,
    high_ratio: null,
    stages: 0,
    source: null,
  } as const;
  const none = { ...result, table: null, stages: [unknown], calibration };
  // The document's issue says so, once.
  expect(textOf(none)).not.toMatch(/calibrated|expected/);
  expect(textOf({ ...none, calibration: result.calibration })).toContain('expected');
});
