import { describe, expect, test } from 'vitest';
import type { GroupedAttention } from '../../llm/architecture.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { kvCacheBytes } from '../../llm/kv-cache.js';
import { floatStorage } from '../../llm/storage.js';
import type { StageShape } from '../../llm/shape.js';
import type { Finding, StageWaterfall } from '../../model/documents/explain.js';
import { figure, missing } from '../../model/figure.js';
import type { StageFacts } from '../findings/stage-facts.js';
import { gpuRoofs } from '../../facts/roofs.js';
import { tinyConfig } from '../../facts/test-session.js';
import { gpuPeaks, necessaryOf, type Peaks } from '../../facts/waterfall/necessary.js';
import { type Effect, waitsForHost, type StageNeeds, type StageState } from './stage-state.js';
import { classOfBar } from '../../model/bars.js';
import { applyChanges } from './apply-changes.js';
import { parseChanges } from './words.js';
import { withDtype } from './work-changes.js';
import { bytesPerElement } from '../../model/dtype.js';

const none = { ms: 0, calls: 0 };
const facts = (change: Partial<StageFacts>): StageFacts => ({
  kind: 'decode',
  instances: 4,
  wall_ms: 10,
  inside_ms: 0,
  insides: 0,
  prepared_ms: 0,
  inside_compile_ms: 0,
  before_ms: 0,
  compute_ms: 5,
  comm_ms: 0,
  copy_ms: 0,
  busy_ms: 5,
  synchronization_ms: 0,
  host_ms: 0,
  launch_overhead_ms: 0,
  launch_latency_ms: 0,
  device_dependency_ms: 0,
  unattributed_ms: 0,
  kernels: 100,
  launches: 100,
  graph_launches: 0,
  launching_ms: 0,
  captured_host_ms: null,
  own_host_ms: null,
  graph_attention_ms: 0,
  long_host_ms: 0,
  compile_ms: 0,
  compiles: 0,
  first_use_ms: 0,
  waits: { synchronize: none, read: none, copy: none, allocator: none },
  ...change,
});

/** A stage of these bars in ms, ± 1 %. */
function stateOf(bars: Record<string, number>, change: Partial<StageState> = {}): StageState {
  const total = Object.values(bars).reduce((sum, ms) => sum + ms, 0);
  const waterfall = {
    kind: 'decode',
    source: 'trace',
    point: null,
    measured_ms: figure(total, 'ms', 'measured', { n: 4, ci95: [0.99 * total, 1.01 * total] }),
    clean_ms: missing('no_clean_execution', 'none'),
    bars: [],
  } as unknown as StageWaterfall;
  return {
    waterfall,
    bars: new Map(Object.entries(bars)),
    kernelCounts: new Map(),
    needs: missing('no_model', 'the workload did not say which model it ran'),
    idleBars: new Set(Object.keys(bars).filter(waitsForHost)),
    kernels: null,
    launches: null,
    copiedBytes: null,
    job: null,
    facts: null,
    hostMs: null,
    launchIdleMs: 0,
    nodeNs: null,
    findings: [],
    gpuName: 'NVIDIA H200',
    onCpu: false,
    weightStreams: [],
    ...change,
  };
}

const after = (state: StageState, ...words: string[]) => {
  const result = applyChanges(state, parseChanges(words));
  if (result.after_ms.value === null) throw new Error(result.after_ms.reason.text);
  return { ...result, ms: result.after_ms.value, ci95: result.after_ms.ci95! };
};

describe('launches', () => {
  // 100 launches leave 3.6 ms between kernels, half a millisecond of it in one long host gap.
  const eager = stateOf(
    { 'kernels.gemm': 5, launch_latency: 0.6, launch_overhead: 1, 'host.program': 2 },
    { facts: facts({ long_host_ms: 0.5 }), kernels: 100, launches: 100 },
  );

  test('a CUDA graph leaves one node gap per kernel and the long gap: 5 + 100 × 0.45 µs + 0.5', () => {
    const result = after(eager, 'cudagraph');
    expect(result.ms).toBeCloseTo(5 + 0.045 + 0.5, 9);
    expect(result.before_ms.value).toBeCloseTo(8.6, 9);
    // Nodes of 1.5 µs each, the largest measured value: 0.105 ms more.
    expect(result.ci95[1]).toBeGreaterThan(result.ms + 0.105);
    // No gap at all: 0.045 ms less.
    expect(result.ci95[0]).toBeLessThan(result.ms - 0.045);
    expect(result.ci95[0]).toBeGreaterThan(5);
    expect(result.bars.map(({ id }) => id)).toContain('launch_overhead');
  });

  test('host time at the edges of the capture stays and is not counted twice', () => {
    const bars = { 'kernels.gemm': 5, launch_latency: 0.6, 'host.program': 2, 'host.start_up': 10 };
    // The long gaps are 2 ms between launches and the 10 ms of the edge.
    const state = stateOf(bars, { facts: facts({ long_host_ms: 12 }), kernels: 100, launches: 100 });
    const result = after(state, 'cudagraph');
    expect(result.ms).toBeLessThan(17.6);
    expect(result.ms).toBeGreaterThan(15);
  });

  test('uses a measured node gap, and keeps waits of the host', () => {
    const waiting = { ...eager.facts!, waits: { ...eager.facts!.waits, synchronize: { ms: 1, calls: 1 } } };
    const result = after({ ...eager, facts: waiting, nodeNs: 1000 }, 'cudagraph');
    expect(result.ms).toBeCloseTo(5 + 0.1 + 0.5 + 1, 9);
  });

  test('one launch, a CPU, and a session without launches do not change, with the reason', () => {
    for (const state of [
      { ...eager, launches: 1 },
      { ...eager, onCpu: true },
      { ...eager, facts: null, kernels: null },
    ]) {
      const result = after(state, 'cudagraph');
      expect(result.ms).toBe(8.6);
      expect(result.bars).toEqual([]);
      expect(result.unchanged[0]!.why).toMatch(/already|CPU|not known/);
      expect(result.assumptions).toEqual([]);
    }
  });

  test('without waits the idle time after them disappears', () => {
    const waiting = { ...eager.facts!, waits: { ...eager.facts!.waits, synchronize: { ms: 1.2, calls: 3 } } };
    const result = after({ ...eager, facts: waiting }, 'no-sync');
    expect(result.ms).toBeCloseTo(8.6 - 1.2, 9);
    expect(after(eager, 'no-sync').bars).toEqual([]);
    expect(after(eager, 'no-sync').unchanged).toEqual([
      { change: 'no-sync', why: 'the host does not wait for the device inside the stage' },
    ]);
  });

  test('a benchmark knows neither waits nor copies, and says so', () => {
    const { waterfall } = eager;
    const bench: StageState = {
      ...eager,
      facts: null,
      waterfall: { ...waterfall, source: 'bench' },
    };
    for (const word of ['no-sync', 'pinned-copies'])
      expect(after(bench, word)).toMatchObject({
        bars: [],
        assumptions: [],
        unchanged: [{ why: expect.stringContaining('without a timeline') as string }],
      });
  });

  test("pinned copies overlap with kernels as far as these reach, at the link's rate", () => {
    // 64 MB take 64e6 / (0.85 × 63e9) = 1.195 ms from pinned memory, which 5 ms of kernels hide completely.
    const copying = stateOf(
      { 'kernels.gemm': 5, 'exposed_copy.htod_pageable': 4 },
      { facts: facts({}), copiedBytes: 64e6 },
    );
    const result = after(copying, 'pinned-copies');
    expect(result.ms).toBeCloseTo(5, 9);
    expect(result.ci95[1]).toBeCloseTo(5 + Math.hypot(64 / (0.85 * 63), 0.05), 6);
    // Without kernels to overlap with, the copies stay exposed.
    const fewKernels = stateOf(
      { 'kernels.gemm': 0.5, 'exposed_copy.htod_pageable': 4 },
      { facts: facts({}), copiedBytes: 64e6 },
    );
    expect(after(fewKernels, 'pinned-copies').ms).toBeCloseTo(0.5 + 64 / (0.85 * 63) - 0.5, 6);
    // A copy back is the stage's result: it stays, and so do the waits for it.
    const back = stateOf({ 'kernels.gemm': 5, 'exposed_copy.dtoh_pageable': 4 }, { facts: facts({}) });
    expect(after(back, 'pinned-copies')).toMatchObject({ ms: 9, bars: [] });
  });
});

const architecture = readArchitecture(tinyConfig);
const sheet = gpuPeaks(gpuRoofs('NVIDIA H200', null));
/** So slow that kernel latency is negligible and memory limits everything. */
const slow: Peaks = { flops: () => figure(1e15, 'FLOP/s', 'test'), bandwidth: figure(1e6, 'B/s', 'test') };
const shape: StageShape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 99 };

/** Every class takes twice its necessary time. */
function twiceTheNeed(
  peaks: Peaks,
  shapeChange: Partial<StageShape> = {},
  change: Partial<StageState> = {},
  storage = floatStorage('bfloat16'),
): StageState {
  const needs: StageNeeds = {
    model: { architecture, storage },
    shape: { ...shape, ...shapeChange },
    peaks,
  };
  const need = necessaryOf(needs.model, needs.shape, needs.peaks);
  if ('reason' in need) throw new Error(need.reason.text);
  const classes = [...need.byClass].filter(([name]) => name !== 'sampling');
  const oneByOne = classes.reduce((sum, [, ms]) => sum + ms, 0);
  const bars = {
    roofline: need.rooflineMs,
    serial: oneByOne - need.rooflineMs,
    ...Object.fromEntries(classes.map(([name, ms]) => [`inefficiency.${name}`, ms])),
  };
  return stateOf(bars, { needs, ...change });
}

/** Time of a class after a change: its bar plus its necessary time. */
function classAfter(found: ReturnType<typeof after>, before: StageState, id: string): number {
  return (found.bars.find((bar) => bar.id === id)?.after_ms ?? before.bars.get(id)!) * 2;
}

describe('work', () => {
  test('a bar that two changes move has the reasons of both', () => {
    const { bars } = after(twiceTheNeed(slow), 'batch-size=8', 'dtype=float8');
    const explanations = bars.map(({ explanation }) => explanation);
    expect(explanations.join('\n')).toMatch(/weights once per step, .*; then its roofline .*per-channel FP8/);
  });

  test('a larger batch reads the weights once and the cache of each sequence', () => {
    const before = twiceTheNeed(slow);
    const result = after(before, 'batch-size=4');
    // Keys and values: 99 tokens read and one written, in addition to q and the output; all of it four times.
    expect(
      classAfter(result, before, 'inefficiency.attention') / (2 * before.bars.get('inefficiency.attention')!),
    ).toBeCloseTo(4, 9);
    // GEMMs: hidden 64, 2 layers, vocabulary 512, bfloat16: weights once, activations 4 times (by hand).
    const weights = 2 * (2 * (64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 192) + 512 * 64);
    const activations = 2 * (2 * (64 + 128 + 64 + 64 + 64 + 2 * 192 + 192 + 64) + 64 + 512);
    const gemm =
      classAfter(result, before, 'inefficiency.gemm') / (2 * before.bars.get('inefficiency.gemm')!);
    expect(gemm).toBeCloseTo((weights + 4 * activations) / (weights + activations), 9);
    expect(result.per_token_before_ms).toBeCloseTo(result.before_ms.value!, 9);
    expect(result.per_token_after_ms).toBeCloseTo(result.ms / 4, 9);
    expect(after(before, 'batch-size=1')).toMatchObject({
      assumptions: [],
      unchanged: [{ change: 'batch-size=1', why: 'its batch is 1 already' }],
    });
    expect(after(before, 'dtype=bfloat16')).toMatchObject({
      assumptions: [],
      unchanged: [{ change: 'dtype=bfloat16', why: 'its weights are bfloat16 already' }],
    });
  });

  test('twice the context doubles the reads of the cache', () => {
    const before = twiceTheNeed(slow);
    const result = after(before, 'context-len=198');
    const grown =
      classAfter(result, before, 'inefficiency.attention') - 2 * before.bars.get('inefficiency.attention')!;
    const bytes = kvCacheBytes(architecture, { kvCache: 'bfloat16', batchSize: 1, contextTokens: 99 });
    // Two bytes a value, at 1 MB/s, at half the roof.
    expect(grown).toBeCloseTo((2 * bytes) / 1e3, 6);
    expect(result.per_token_after_ms).toBeNull();
  });

  test('copies grow with the context for as long as three copies of the cache take; others are of weights', () => {
    const before = twiceTheNeed(slow);
    const bytes = kvCacheBytes(architecture, { kvCache: 'bfloat16', batchSize: 1, contextTokens: 99 });
    const repeats = architecture.layers[0]!.attention as GroupedAttention;
    const oneCopyMs = (2 * bytes * (repeats.headCount / repeats.kvHeadCount)) / 1e3 / 0.7;
    const copiesOf = (ms: number) => {
      const bars = new Map([...before.bars, ['nonessential.copy', ms]]);
      const found = after({ ...before, bars }, 'context-len=198');
      return found.bars.find(({ id }) => id === 'nonessential.copy')!.after_ms;
    };
    expect(copiesOf(oneCopyMs)).toBeCloseTo(2 * oneCopyMs, 6);
    expect(copiesOf(10 * oneCopyMs)).toBeCloseTo(13 * oneCopyMs, 6);
  });

  test('another GPU scales memory-bound work by the data sheets, and not the host', () => {
    const before = twiceTheNeed(sheet, {}, {});
    const idle = new Map([...before.bars, ['host.program', 7]]);
    const state = { ...before, bars: idle, idleBars: new Set(['host.program']) };
    const kernels = [...before.bars.values()].reduce((sum, ms) => sum + ms, 0);
    const result = after(state, 'gpu=H100');
    // H200: 4800 GB/s, H100 SXM: 3350 GB/s (data sheets).
    expect(result.ms).toBeCloseTo((kernels * 4800) / 3350 + 7, 9);
    expect(after(state, 'gpu=H200').ms).toBeCloseTo(kernels + 7, 9);
    const { assumptions } = applyChanges(state, parseChanges(['gpu=H100']));
    expect(assumptions[0]).toContain('not NVIDIA H100 PCIe');
    expect(assumptions.filter((text) => text.startsWith('not modeled'))).toHaveLength(1);
  });

  test('int4 weights: 0.5 bytes and a scale of 2.5 per 128, only in the layers', () => {
    const before = twiceTheNeed(slow);
    const result = after(before, 'int4');
    const layers = 2 * (64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 192);
    const head = 2 * 512 * 64;
    const activations = 2 * (2 * (64 + 128 + 64 + 64 + 64 + 2 * 192 + 192 + 64) + 64 + 512);
    // Groups of 128 in rows of 64 (one each) and of 192 (two).
    const scales = 2.5 * 2 * (64 + 2 * 32 + 64 + 2 * 192 + 2 * 64);
    const gemm =
      classAfter(result, before, 'inefficiency.gemm') / (2 * before.bars.get('inefficiency.gemm')!);
    expect(gemm).toBeCloseTo(
      (0.5 * layers + scales + head + activations) / (2 * layers + head + activations),
      9,
    );
  });

  test.each([
    ['a KV cache in the type of the activations follows them', 'float32', 0.5],
    ['a KV cache of its own type stays', 'float8', 1],
  ] as const)('%s', (_, kvCache, factor) => {
    const before = twiceTheNeed(slow, {}, {}, floatStorage('float32', kvCache));
    const { state } = withDtype(before, 'int4') as Effect;
    if ('reason' in state.needs) throw new Error('no needs');
    const { activations, kvCache: kvAfter } = state.needs.model.storage;
    expect(activations).toBe('bfloat16');
    expect(bytesPerElement[kvAfter] / bytesPerElement[kvCache]).toBe(factor);
  });

  test('rejects a dtype that the GPU does not support', () => {
    const a100 = gpuPeaks(gpuRoofs('NVIDIA A100-SXM4-80GB', null));
    const state = twiceTheNeed(a100, {}, { gpuName: 'NVIDIA A100-SXM4-80GB' });
    expect(() => after(state, 'dtype=float8')).toThrow(expect.objectContaining({ code: 'E_DTYPE' }));
    expect(after(state, 'int4').ms).toBeLessThan([...state.bars.values()].reduce((sum, ms) => sum + ms, 0));
  });

  test('without a model there is no prediction', () => {
    const result = applyChanges(stateOf({ 'kernels.gemm': 5 }), parseChanges(['batch-size=4']));
    expect(result.after_ms).toMatchObject({ value: null, reason: { code: 'no_model' } });
  });
});

describe('host and device run concurrently', () => {
  const gaps = (state: StageState, ms: number, change: Partial<StageState>): StageState => ({
    ...state,
    bars: new Map([...state.bars, ['launch_overhead', ms]]),
    idleBars: new Set(['launch_overhead']),
    ...change,
  });

  test('longer kernels fill the time in which the device waits for launches', () => {
    const state = twiceTheNeed(slow);
    const kernels = [...state.bars.values()].reduce((sum, ms) => sum + ms, 0);
    const eager = gaps(state, 10 * kernels, { launchIdleMs: 10 * kernels });
    expect(after(eager, 'batch-size=2').ms).toBeCloseTo(11 * kernels, 6);
  });

  test("shorter kernels save time only down to the host's time", () => {
    const state = twiceTheNeed(slow);
    const kernels = [...state.bars.values()].reduce((sum, ms) => sum + ms, 0);
    const eager = gaps(state, kernels, { hostMs: 1.9 * kernels, launchIdleMs: kernels });
    const result = after(eager, 'int4');
    expect(result.ms).toBeCloseTo(1.9 * kernels, 6);
    // As a graph only the device's time remains.
    const asGraph = { ...eager, facts: facts({ launch_overhead_ms: kernels }), kernels: 100, launches: 100 };
    expect(after(asGraph, 'cudagraph', 'int4').ms).toBeLessThan(kernels);
  });
});

describe('fusing', () => {
  test("takes a rule's gain from the bars it names", () => {
    const finding = {
      stage: 'decode',
      title: 'Eager attention',
      bars: ['inefficiency.attention', 'nonessential.copy'],
      gain: {
        expected_ms: 3,
        low_ms: 2,
        high_ms: 3.5,
        after_ms: 7,
        assumption: 'as a fused kernel',
        what_if: 'fused-attention',
      },
    } as unknown as Finding;
    const state = stateOf(
      { roofline: 2, 'inefficiency.attention': 3, 'nonessential.copy': 1, 'inefficiency.gemm': 4 },
      { findings: [finding] },
    );
    const result = after(state, 'fused-attention');
    expect(result.ms).toBeCloseTo(7, 9);
    expect(result.ci95[0]).toBeCloseTo(7 - Math.hypot(0.07, 0.5), 6);
    expect(result.ci95[1]).toBeCloseTo(7 + Math.hypot(0.07, 1), 6);
    expect(result.bars.map(({ id, after_ms }) => [id, after_ms])).toEqual([
      ['inefficiency.attention', 0.75],
      ['nonessential.copy', 0.25],
    ]);
  });

  test('a fused kernel shortens the stage until the host launches the remaining kernels as slowly', () => {
    const finding = {
      stage: 'decode',
      title: 'Eager attention',
      bars: ['inefficiency.attention'],
      launches: 20,
      gain: {
        expected_ms: 6,
        low_ms: 5,
        high_ms: 6,
        after_ms: 4,
        assumption: '',
        what_if: 'fused-attention',
      },
    } as unknown as Finding;
    const bars = { roofline: 2, 'inefficiency.attention': 7, launch_latency: 1 };
    // 40 launches take the host 8 ms; the remaining 20 take 4 ms.
    const state = stateOf(bars, { findings: [finding], hostMs: 8, launches: 40 });
    expect(after(state, 'fused-attention').ms).toBeCloseTo(4, 9);
    expect(after({ ...state, hostMs: 12 }, 'fused-attention').ms).toBeCloseTo(6, 9);
  });

  test('without a fusion finding attention stays, with a note, and a quarter of elementwise kernels stays', () => {
    const state = stateOf({ roofline: 2, 'inefficiency.elementwise': 2, 'nonessential.copy': 2 });
    expect(after(state, 'fused-attention').unchanged).toEqual([
      { change: 'fused-attention', why: 'no rule finds unfused attention in this stage' },
    ]);
    expect(after(state, 'fused-elementwise').ms).toBeCloseTo(3, 9);
  });
});

test('classes of bars', () => {
  expect(['inefficiency.gemm', 'nonessential.copy', 'kernels.other', 'host.program'].map(classOfBar)).toEqual(
    ['gemm', 'copy', 'other', null],
  );
});
