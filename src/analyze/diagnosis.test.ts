import { describe, expect, test } from 'vitest';
import type { Breakdown, ClassRow, Diagnosis, StageResult } from '../model/documents/profile.js';
import { figure, missing } from '../model/figure.js';
import { testProfile } from '../report/test-profile.js';
import { stepBars } from './bars.js';
import { diagnosis } from './diagnosis.js';
import type { DiagnosisInput } from './observations.js';
import { tinyWorkload } from './test-session.js';

const row = (name: ClassRow['class'], ms: number, necessary_ms: number | null): ClassRow => ({
  class: name,
  calls: 10,
  ms,
  share: 0,
  necessary_flops: null,
  necessary_bytes: necessary_ms === null ? null : necessary_ms * 1000,
  necessary_ms,
  intensity_flop_per_byte: null,
  achieved_flops_per_s: null,
  achieved_bytes_per_s: null,
  bound: null,
});

const operator = (name: string, op_type: string, opClass: ClassRow['class'], ms: number) => ({
  name,
  op_type,
  class: opClass,
  layer: null,
  calls: 1,
  ms,
  share: 0,
  input_shapes: null,
});

/** A stage of 100 ms: GEMM 60 (necessary 50), attention 10 (5), `copyMs` of copies, gaps `betweenMs` and `edgesMs`; 2 sampling. */
function stage(
  kind: 'prefill' | 'decode',
  { copyMs = 0, betweenMs = 0, edgesMs = 0, cleanMs = 100, top = [] as Breakdown['top_operators'] } = {},
): StageResult {
  const by_class = [row('gemm', 60, 50), row('attention', 10, 5), row('copy', copyMs, null)];
  const operators = 70 + copyMs;
  const breakdown: Breakdown = {
    instances: 1,
    stage_ms: operators + betweenMs + edgesMs,
    operators_ms: operators,
    gaps_between_operators_ms: betweenMs,
    gaps_at_edges_ms: edgesMs,
    remainder_ms: 0,
    by_class,
    by_layer: [],
    top_operators: top,
  };
  const none = missing('test', 'not needed');
  return {
    kind,
    instances: 1,
    duration_ms: figure(cleanMs, 'ms', 'test'),
    tokens_per_s: none,
    profiled_ms: figure(breakdown.stage_ms, 'ms', 'test'),
    profiler_overhead_ms: none,
    flops: none,
    bytes: figure(55_000, 'B', 'test'),
    intensity_flop_per_byte: none,
    working_set_bytes: none,
    bandwidth_bytes_per_s: none,
    bandwidth_level: null,
    mfu: figure(0.5, 'ratio', 'test'),
    mbu: none,
    bound: kind === 'prefill' ? 'compute' : 'memory',
    roofline_ms: figure(50, 'ms', 'test'),
    bars: stepBars({
      measuredMs: cleanMs,
      callMs: breakdown.stage_ms,
      samplingMs: 2,
      rooflineMs: 50,
      breakdown,
    }),
    breakdown,
  };
}

const { data } = testProfile();
const diagnose = (stages: StageResult[], change: Partial<DiagnosisInput> = {}): Diagnosis[] =>
  judged(stages, change).diagnosis;

function judged(stages: StageResult[], change: Partial<DiagnosisInput> = {}) {
  return diagnosis({
    busy: false,
    workload: tinyWorkload({ batch_size: 1, output_len: 33 }),
    latency: { ...data.latency, decode_step_by_index_ms: [] },
    stages,
    memory: null,
    usableCores: null,
    ...change,
  });
}

const idsOf = (found: Diagnosis[]): string[] => found.map(({ id }) => id);
const one = (found: Diagnosis[], id: string): Diagnosis => {
  const match = found.find((entry) => entry.id === id);
  if (!match) throw new Error(`${id} not among ${idsOf(found).join(', ')}`);
  return match;
};

describe('verdict', () => {
  test('shares by hand: kernels, scheduling, host; allocation is missing, not 0', () => {
    // Call 70 + 8 + 12 + 6 of copies = 96; sampling 2, loop 2.
    const [verdict] = diagnose([stage('decode', { copyMs: 6, betweenMs: 8, edgesMs: 12 })]);
    expect(verdict).toMatchObject({ id: 'verdict', stage: 'decode', cost: 'kernels' });
    expect(verdict!.share.value).toBeCloseTo(0.76, 12);
    expect(verdict!.shares!.kernels.value).toBeCloseTo(0.76, 12);
    expect(verdict!.shares!.scheduling.value).toBeCloseTo(0.2, 12);
    expect(verdict!.shares!.host.value).toBeCloseTo(0.04, 12);
    expect(verdict!.shares!.allocation).toMatchObject({ value: null, reason: { code: 'not_in_trace' } });
    expect(verdict!.text).toContain('kernels 76 %, scheduling 20 %, the host 4.0 %');
  });

  test('scheduling dominates where gaps do', () => {
    const [verdict] = diagnose([stage('decode', { betweenMs: 150, edgesMs: 30, cleanMs: 252 })]);
    expect(verdict!.cost).toBe('scheduling');
    expect(verdict!.share.value).toBeCloseTo(180 / 252, 12);
  });

  test('a share below 0 or over 100 % is withheld with the reason', () => {
    // Operators of 140 ms in the profiled pass of a step that takes 100 ms in the clean one.
    const [verdict, ...rest] = diagnose([stage('decode', { copyMs: 70, cleanMs: 100 })]);
    expect(verdict).toMatchObject({ cost: null, shares: { kernels: { value: null } } });
    expect(verdict!.share).toMatchObject({ value: null, reason: { code: 'not_a_share' } });
    expect(verdict!.text).not.toContain('%');
    for (const { share } of rest) expect(share.value ?? 0).toBeLessThanOrEqual(1);
    // A call of 140 ms in a clean step of 100 ms: what is left for the loop is below 0.
    const { withheld } = judged([stage('decode', { copyMs: 70, cleanMs: 100 })]);
    expect(withheld.map(({ kind, id, reason }) => [kind, id, reason.code])).toEqual([
      ['bar_share', 'host.loop', 'not_a_share'],
    ]);
  });

  test('none where what is unexplained could turn the order, and nothing is built on the parts then', () => {
    // Kernels 100 and scheduling 60 of 164: 24 % apart, with 37 % unexplained.
    const found = diagnose([stage('decode', { copyMs: 130, edgesMs: 0, cleanMs: 300 })]);
    expect(found[0]).toMatchObject({ id: 'verdict', cost: 'kernels' });
    const slow = stage('decode', { copyMs: 30, edgesMs: 60, cleanMs: 164 });
    slow.bars = slow.bars.map((bar) => (bar.id === 'unattributed' ? { ...bar, ms: -60 } : bar));
    const doubtful = diagnose([slow]);
    expect(doubtful[0]).toMatchObject({ id: 'verdict', cost: null, decision: null });
    expect(doubtful[0]!.text).toContain('not explained −37 %');
    const { diagnosis: said, withheld } = judged([slow]);
    expect(idsOf(said)).not.toContain('copies');
    for (const id of ['copies', 'runtime_call'])
      expect(withheld.find((each) => each.id === id)?.reason.code).toBe('passes_differ');
  });

  test('without a profiled pass it is unknown, with the reason', () => {
    const bare = { ...stage('decode'), bars: [], breakdown: null, roofline_ms: missing('x', 'no roofline') };
    const [verdict, rest] = diagnose([{ ...bare, profiled_ms: missing('not_profiled', 'it ended early') }]);
    expect(verdict).toMatchObject({ cost: null, share: { value: null } });
    expect(verdict!.text).toBe('What costs in decode is unknown: it ended early.');
    expect(rest).toMatchObject({ id: 'nothing_significant', share: { value: null } });
  });
});

describe('observations', () => {
  test('a memory-bound step: least time and the part of bytes that weights are', () => {
    const found = one(diagnose([stage('decode', { edgesMs: 26 })]), 'weights_per_step');
    expect(found.share.value).toBe(0.5);
    // 50 000 of 55 000 bytes.
    expect(found.text).toContain('91 % of them');
    expect(found.text).toContain('once a step for 1 sequence.');
    const fault = { ...stage('decode'), roofline_ms: figure(101, 'ms', 'test') };
    expect(idsOf(diagnose([fault]))).not.toContain('weights_per_step');
    expect(judged([fault]).withheld).toMatchObject([
      { kind: 'observation', id: 'weights_per_step', stage: 'decode', reason: { code: 'not_a_share' } },
    ]);
  });

  test('prefill near and far from the peak; nothing over it', () => {
    const prefill = (mfu: number) => ({ ...stage('prefill'), mfu: figure(mfu, 'ratio', 'test') });
    expect(idsOf(diagnose([prefill(0.85)]))).toContain('prefill_near_peak');
    expect(one(diagnose([prefill(0.4)]), 'prefill_far_from_peak').text).toContain('50 ms of 100 ms');
    expect(idsOf(diagnose([prefill(1.1)])).join()).not.toContain('peak');
  });

  test('on a busy machine what another process can produce is withheld, what sizes decide is said', () => {
    const { diagnosis: said, withheld } = judged([stage('decode', { edgesMs: 26 })], { busy: true });
    expect(idsOf(said)).toEqual(['verdict', 'weights_per_step']);
    expect(withheld).toMatchObject([
      { id: 'runtime_call', stage: 'decode', reason: { code: 'machine_busy' } },
    ]);
  });

  test('copies are the growing KV cache only when the engine says so and they are Concat', () => {
    const top = [
      operator('/a/Concat', 'Concat', 'copy', 9),
      operator('/a/Transpose', 'Transpose', 'copy', 3),
    ];
    const copying = [stage('decode', { copyMs: 12, edgesMs: 14, top })];
    const engine = (options: Record<string, string>) => ({
      workload: tinyWorkload({ engine: { name: 'onnxruntime', version: null, options } }),
    });
    const grows = one(diagnose(copying, engine({ kv_cache: 'grows' })), 'kv_cache_copied');
    expect(grows.share.value).toBeCloseTo(0.12, 12);
    expect(grows.text).toContain('9 ms of them Concat');
    expect(idsOf(diagnose(copying, engine({ kv_cache: 'in-place' })))).toContain('copies');
    top[0]!.op_type = 'Transpose';
    expect(idsOf(diagnose(copying, engine({ kv_cache: 'grows' })))).toContain('copies');
  });

  test('the call into the runtime, the vocabulary; at most four, most time first', () => {
    const top = [operator('/lm_head/MatMul', 'MatMul', 'gemm', 15)];
    const parts = { copyMs: 6, betweenMs: 7, edgesMs: 13, top };
    const found = diagnose([stage('decode', parts)]);
    // 50, then lm_head 15 of a profiled 96, edges 13, gaps 7; copies of 6 are the fifth.
    expect(idsOf(found)).toEqual([
      'verdict',
      'weights_per_step',
      'vocabulary',
      'runtime_call',
      'runtime_dispatch',
    ]);
    expect(one(found, 'vocabulary').text).toContain('25 % of the matrix products');
    expect(one(found, 'vocabulary').text).toContain('512 vocabulary rows');
    expect(one(found, 'runtime_call').share.value).toBeCloseTo(0.13, 12);
    expect(one(found, 'runtime_dispatch').text).toContain('Between its 30 operators');
  });

  test('growth with context: quarters of 32 steps; silent when it is noise', () => {
    const steps = (f: (index: number) => number) => ({
      latency: { ...data.latency, decode_step_by_index_ms: Array.from({ length: 32 }, (_, i) => f(i)) },
    });
    // Means of 0…7 and 24…31: 13.5 and 37.5.
    const found = one(
      diagnose(
        [],
        steps((i) => 10 + i),
      ),
      'context_growth',
    );
    expect(found.share.value).toBeCloseTo(24 / 37.5, 12);
    expect(found.text).toContain(
      '13.5 ms in the first quarter of the output and 37.5 ms in the last: 24 ms more',
    );
    expect(
      idsOf(
        diagnose(
          [],
          steps((i) => 10 + (i % 2)),
        ),
      ),
    ).toEqual(['nothing_significant']);
    expect(
      idsOf(
        diagnose(
          [],
          steps((i) => 10 + (i === 30 ? 8 : 0)),
        ),
      ),
    ).toEqual(['nothing_significant']);
  });

  test('idle cores where compute bounds prefill; memory that is not itemised', () => {
    const prefill = [{ ...stage('prefill'), mfu: missing('x', 'y') }];
    expect(one(diagnose(prefill, { usableCores: 4 }), 'idle_cores').share.value).toBe(0.75);
    expect(idsOf(diagnose(prefill, { usableCores: 1 }))).not.toContain('idle_cores');
    const part = (component: 'weights' | 'residual', bytes: number) => ({
      component,
      bytes,
      confidence: 'low' as const,
      evidence: '',
    });
    const memory = (residual: number) => ({
      ...data.memory!,
      peak_bytes: figure(4 * 2 ** 20, 'B', 'test'),
      breakdown: [part('weights', 2 ** 20), part('residual', residual)],
    });
    const found = one(diagnose([], { memory: memory(2 * 2 ** 20) }), 'memory_not_itemised');
    expect(found.share.value).toBe(0.5);
    expect(found.text).toContain('2 MiB of the peak of 4 MiB');
    expect(idsOf(diagnose([], { memory: memory(2 ** 20) }))).toEqual(['nothing_significant']);
  });
});
