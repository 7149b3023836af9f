import { expect, test } from 'vitest';
import { floatStorage } from '../../llm/storage.js';
import { presetArchitecture } from '../../llm/presets.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { figure } from '../../model/figure.js';
import type { StageFacts } from '../findings/stage-facts.js';
import { gpuRoofs } from '../../facts/roofs.js';
import { gpuPeaks, necessaryOf } from '../../facts/waterfall/necessary.js';
import { launchIdleMs } from './launch-changes.js';
import { waitsForHost, type StageState } from './stage-state.js';
import { applyChanges } from './apply-changes.js';
import { parseChanges } from './words.js';

/**
 * TinyLlama's decode step on an H200 as docs/tours/gpu.md prints it (batch 1, 128 prompt tokens, 64 generated, float16, eager):
 * under nsys 13.02 ms with 923 launches, 9.14 ms without; kernels by class; idle time by cause; a graph node 522 ns.
 */
function tour(): StageState {
  const none = { ms: 0, calls: 0 };
  const model = { architecture: presetArchitecture('tinyllama-1.1b'), storage: floatStorage('float16') };
  const shape = { phase: 'decode' as const, batchSize: 1, newTokens: 1, contextTokens: 159 };
  const peaks = gpuPeaks(gpuRoofs('NVIDIA H200', null));
  const need = necessaryOf(model, shape, peaks);
  if ('reason' in need) throw new Error(need.reason.text);
  const classes: [name: string, ms: number, kernels: number][] = [
    ['gemm', 1.1, 155],
    ['elementwise', 0.621, 0.621 / 1.5e-3],
    ['copy', 0.284, 0.284 / 2e-3],
    ['norm', 0.0968, 45],
    ['attention', 0.0917, 22],
    ['embedding', 0.002, 1],
  ];
  const needOf = (name: string) => need.byClass.get(name as never) ?? null;
  const oneByOne = classes.reduce((sum, [name]) => sum + (needOf(name) ?? 0), 0);
  // 5.35 ms host, 3.40 launch calls, 2.05 latency under nsys, minus the 3.88 ms that nsys added, host first.
  const idle = { launch_latency: 2.05, launch_overhead: 3.4, 'host.program': 5.35 - 3.88 };
  const bars = new Map<string, number>([
    ['roofline', need.rooflineMs],
    ['serial', oneByOne - need.rooflineMs],
    ...classes.map(([name, ms]): [string, number] => {
      const neededMs = needOf(name);
      return neededMs === null ? [`nonessential.${name}`, ms] : [`inefficiency.${name}`, ms - neededMs];
    }),
    ...Object.entries(idle),
  ]);
  const facts: StageFacts = {
    kind: 'decode',
    instances: 189,
    wall_ms: 9.14,
    compute_ms: 2.2,
    comm_ms: 0,
    copy_ms: 0,
    busy_ms: 2.2,
    synchronization_ms: 0,
    host_ms: 5.35 - 3.88,
    launch_overhead_ms: 3.4,
    launch_latency_ms: 2.05,
    device_dependency_ms: 0,
    unattributed_ms: 0,
    kernels: 923,
    launches: 923,
    graph_launches: 0,
    launching_ms: 0,
    captured_host_ms: null,
    own_host_ms: null,
    graph_attention_ms: 0,
    long_host_ms: 0,
    compile_ms: 0,
    compiles: 0,
    first_use_ms: 0,
    inside_ms: 0,
    insides: 0,
    prepared_ms: 0,
    inside_compile_ms: 0,
    before_ms: 0,
    waits: { synchronize: none, read: none, copy: none, allocator: none },
  };
  const state: StageState = {
    waterfall: {
      kind: 'decode',
      source: 'trace',
      point: null,
      measured_ms: figure(13.02, 'ms', 'measured'),
      clean_ms: figure(9.14, 'ms', 'measured', { n: 189, ci95: [8.9, 9.4] }),
      bars: [],
    } as unknown as StageWaterfall,
    bars,
    kernelCounts: new Map(classes.map(([name, , kernels]) => [name, kernels])),
    needs: { model, shape, peaks },
    idleBars: new Set([...bars.keys()].filter(waitsForHost)),
    kernels: 923,
    launches: 923,
    copiedBytes: 0,
    job: null,
    facts,
    hostMs: 9.14,
    launchIdleMs: 0,
    nodeNs: 522,
    findings: [],
    gpuName: 'NVIDIA H200',
    onCpu: false,
    weightStreams: [],
  };
  return { ...state, launchIdleMs: launchIdleMs(state) };
}

const predict = (...words: string[]) => {
  const { before_ms: before, after_ms: after } = applyChanges(tour(), parseChanges(words));
  if (before.value === null || after.value === null) throw new Error('nothing was predicted');
  return { before: before.value, after: after.value, ci95: after.ci95! };
};

test('as a CUDA graph the step took 2.97 ms', () => {
  const { before, after, ci95 } = predict('cudagraph');
  expect(before).toBeCloseTo(9.14, 1);
  expect(Math.abs((before - after - (9.14 - 2.97)) / (9.14 - 2.97))).toBeLessThan(0.1);
  expect(ci95[0]).toBeLessThan(2.97);
  expect(ci95[1]).toBeGreaterThan(2.97);
});

test('eight sequences took 9.31 ms, because the host limits; as a graph 32 took 5.1 ms', () => {
  const eight = predict('batch-size=8');
  expect(Math.abs(eight.after - 9.31) / 9.31).toBeLessThan(0.05);
  // The suite: 18.5 times the tokens of 2.95 ms per step.
  const asGraph = predict('cudagraph', 'batch-size=32');
  const measured = (32 / 18.5) * 2.95;
  expect(asGraph.ci95[0]).toBeLessThan(measured);
  expect(asGraph.ci95[1]).toBeGreaterThan(measured);
});
