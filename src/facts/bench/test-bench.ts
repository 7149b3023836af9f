import { type BenchPart, benchPoint, type BenchPoint } from '../../model/bench.js';
import type { BenchPlan, BenchPointResult } from '../../model/documents/bench.js';
import { missing } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import { tinyWorkload } from '../test-session.js';
import { type PointContext, pointResult } from './point.js';
import type { BenchRows, IterationRow } from './rows.js';

export function planOf(points: BenchPoint[], change: Partial<BenchPlan> = {}): BenchPlan {
  return {
    parts: ['latency', 'throughput'],
    protocol: { launches: 2, repeats: 2, seed: 0, sampling: 'greedy, no end token', warmup: 'until stable' },
    variants: [{ execution_id: 'clean', label: 'defaults', engine_args: {}, points }],
    not_measured: [],
    ...change,
  };
}

/** The tiny Llama in float16 on a GPU that has a data sheet. */
export function gpuWorkload(change: Partial<Workload> = {}): Workload {
  const tiny = tinyWorkload();
  return {
    ...tiny,
    model: { ...tiny.model!, dtype: 'float16', weight_bytes: null },
    engine: { name: 'transformers', version: '5.17.0', options: { gpu: 'NVIDIA H200' } },
    device: 'cuda:0',
    threads: null,
    ...change,
  };
}

const noRows: BenchRows = {
  iterations: [],
  points: [],
  steps: [],
  prefills: [],
  work: [],
  memory: [],
};

function contextOf(change: Partial<PointContext> = {}): PointContext {
  return {
    workload: gpuWorkload(),
    plan: planOf([]),
    model: missing('no_model', 'not asked'),
    roofs: missing('no_roofline', 'not asked'),
    telemetry: { metrics: [], energy: [], throttled: [], gpus: ['gpu0'] },
    graphs: false,
    launches: 3,
    status: 'complete',
    ...change,
  };
}

/** A timed repeat of these times, ms. */
function repeatOf(facts: BenchPoint, launch: number, ttft: number, tpot: number): IterationRow {
  const { point, batch_size, input_len, output_len } = facts;
  return {
    point,
    iteration: 0,
    launch,
    warmup: false,
    batch_size,
    input_len,
    output_len,
    ttft_ns: ttft * 1e6,
    tpot_ns: output_len > 1 ? tpot * 1e6 : null,
    e2e_ns: (ttft + (output_len - 1) * tpot) * 1e6,
  };
}

/** A point as the analysis makes it: one launch per given time, one repeat each. */
export function pointOf(
  parts: BenchPart[],
  [batch, input, output]: [number, number, number],
  times: [ttft: number, tpot: number][],
  change: Partial<BenchRows> = {},
  context: Partial<PointContext> = {},
): BenchPointResult {
  const facts = benchPoint(parts, batch, input, output);
  const iterations = times.map(([ttft, tpot], launch) => repeatOf(facts, launch, ttft, tpot));
  return pointResult(facts, { ...noRows, iterations, ...change }, contextOf(context));
}
