import { barWords } from '../vocabulary/bars.js';
import { document, type Document } from '../model/document.js';
import type { ExplainResult, Finding, StageWaterfall, WaterfallBar } from '../model/documents/explain.js';
import { figure, missing } from '../model/figure.js';

function bar(id: string, ms: number, measured: number, more: Partial<WaterfallBar> = {}): WaterfallBar {
  return {
    id,
    label: barWords(id).label,
    ms,
    share: ms / measured,
    count: null,
    confidence: 'high',
    confidence_why: 'exact intervals',
    sql: `SELECT '${id}' AS what, 1 AS count, ${ms} AS ms`,
    better_capture: null,
    note: null,
    parts: [],
    ...more,
  };
}

/** A decode step of 23.31 ms with a roofline of 0.51 ms. */
export function testWaterfall(): StageWaterfall {
  const measured = 23.31;
  return {
    kind: 'decode',
    name: null,
    source: 'trace',
    execution_id: 'profiled',
    point: null,
    instances: 64,
    measured_ms: figure(measured, 'ms', 'windows', { n: 64, sd: 1.2, ci95: [23.01, 23.61] }),
    median_ms: 23.2,
    p10_ms: 22.1,
    clock: 'host',
    clock_why: 'the device was done before the range ended',
    clean_ms: missing('no_clean_execution', 'the session has no execution without a profiler'),
    roofline_ms: figure(0.51, 'ms', 'max(Σ FLOPs / peak, Σ bytes / bandwidth)'),
    bound: null,
    new_tokens: null,
    roofs: ['bandwidth 4100 GB/s: measured'],
    bars: [
      bar('roofline', 0.51, measured, { sql: null }),
      bar('serial', 0.06, measured, { sql: null }),
      bar('inefficiency.gemm', 0.66, measured, { count: 155 }),
      bar('inefficiency.embedding', -0.04, measured, { note: 'no kernel of this class was seen' }),
      bar('nonessential.copy', 0.71, measured, { count: 412 }),
      bar('launch_overhead', 9.8, measured, { count: 924 }),
      bar('synchronization', 0.42, measured, {
        parts: [{ label: 'cudaStreamSynchronize', ms: 0.42, count: 1 }],
      }),
      bar('host.program', 11.19, measured, { count: 900 }),
      bar('unattributed', 0, measured),
    ],
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: 0, device: 0, measured_ms: measured }],
  };
}

export function testFinding(change: Partial<Finding> = {}): Finding {
  return {
    id: 'launch_bound:decode',
    rule: 'launch_bound',
    severity: 'high',
    stage: 'decode',
    title: 'Launch-bound: the GPU is idle 91.5 % of every decode step',
    at_stake_ms: 20.9,
    at_stake_share: 0.9,
    cause: 'The host launches more slowly than the device computes.',
    change: {
      kind: 'code',
      text: 'Capture the step into a CUDA graph.',
      example: 'torch.compile(model, mode="reduce-overhead")',
    },
    gain: {
      per: 'stage',
      expected_ms: 20.9,
      low_ms: 19.5,
      high_ms: 21.4,
      after_ms: 2.41,
      assumption: 'Kernels stay as they are.',
      what_if: 'cudagraph',
    },
    confidence: 'high',
    bars: ['launch_overhead', 'host.program'],
    evidence: [
      {
        text: '924 launches per step on 22 layers',
        sql: 'SELECT 924 AS launches',
        rows: [{ launches: 924, share: 0.9712345678 }],
        row_count: 1,
        kernel_labels: {},
      },
    ],
    hidden_by: null,
    references: [{ title: 'CUDA graphs', url: 'https://docs.nvidia.com/cuda/' }],
    check: 'inferscope explain --verify @last',
    ...change,
  };
}

export function testExplain(change: Partial<ExplainResult> = {}): Document<ExplainResult> {
  return document('explain', '1.0', {
    session: {
      id: '20261121-101010-llm-b1',
      name: 'llm-b1',
      title: 'decode.py, NVIDIA H200',
      kind: 'run',
      started_at: '2026-11-21T10:10:10.000Z',
      status: 'complete',
    },
    workload: null,
    preface: [],
    sentences: [
      'A decode step takes 23.3 ms; roofline limit 0.51 ms (46x faster).',
      'The largest cause is the host: 11.2 ms (48 %).',
      'Launch-bound. Change first: capture the step.',
    ],
    stages: [testWaterfall()],
    without_waterfall: [],
    machine: { busy: false, usable_cores: 2, signs: [] },
    withheld: [],
    findings: [
      testFinding(),
      testFinding({
        id: 'elementwise:decode',
        rule: 'elementwise',
        severity: 'low',
        title: 'Layout copies',
        hidden_by: 'launch_bound:decode',
        gain: null,
      }),
    ],
    rules: [{ rule: 'throttling', title: 'Throttling', outcome: 'not_fired', why: 'clocks were steady' }],
    next_steps: [{ command: 'inferscope run --evaluator torch -- …', why: 'sharpens the host' }],
    ...change,
  });
}
