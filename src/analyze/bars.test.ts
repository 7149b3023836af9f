import { describe, expect, test } from 'vitest';
import type { Breakdown, ClassRow } from '../model/documents/profile.js';
import { stepBars } from './bars.js';

const row = (name: ClassRow['class'], ms: number, necessary_ms: number | null): ClassRow => ({
  class: name,
  calls: 1,
  ms,
  share: 0,
  necessary_flops: null,
  necessary_bytes: null,
  necessary_ms,
  intensity_flop_per_byte: null,
  achieved_flops_per_s: null,
  achieved_bytes_per_s: null,
  bound: null,
});

/** Operators 6 + 2 + 1 = 9, gaps 2 + 1, so the profiled call took 12. */
const breakdown: Breakdown = {
  instances: 1,
  stage_ms: 12,
  operators_ms: 9,
  gaps_between_operators_ms: 2,
  gaps_at_edges_ms: 1,
  remainder_ms: 0,
  by_class: [row('gemm', 6, 4), row('attention', 2, 1), row('copy', 1, null)],
  by_layer: [],
  top_operators: [],
};
const input = { measuredMs: 13, callMs: 12, samplingMs: 0.5, rooflineMs: 4.5, breakdown };

function bars(change: Partial<typeof input>): [Record<string, number>, number] {
  const found = stepBars({ ...input, ...change });
  return [Object.fromEntries(found.map((bar) => [bar.id, bar.ms])), found.reduce((sum, b) => sum + b.ms, 0)];
}

const kernels = {
  roofline: 4.5,
  // Necessary one by one 4 + 1, against 4.5 at once.
  serial: 0.5,
  'inefficiency.gemm': 2,
  'inefficiency.attention': 1,
  'nonessential.copy': 1,
};

describe('bars of a decode step', () => {
  test('without overhead: each part by hand', () => {
    const [found, sum] = bars({});
    expect(found).toEqual({
      ...kernels,
      'host.runtime_dispatch': 2,
      'host.runtime_call': 1,
      'host.sampling': 0.5,
      'host.loop': 0.5,
      unattributed: 0,
    });
    expect(sum).toBe(13);
  });

  test('what the profiler added is taken from the gaps between operators first', () => {
    const [found, sum] = bars({ measuredMs: 11.5, callMs: 10.5 });
    expect(found).toMatchObject({ ...kernels, 'host.runtime_dispatch': 0.5, 'host.runtime_call': 1 });
    expect(found['unattributed']).toBeCloseTo(0, 12);
    expect(sum).toBeCloseTo(11.5, 12);
  });

  test('then from the edges; the rest is unattributed and negative', () => {
    const [found, sum] = bars({ measuredMs: 8, callMs: 7 });
    expect(found['host.runtime_dispatch']).toBeUndefined();
    expect(found['host.runtime_call']).toBeUndefined();
    expect(found['host.loop']).toBe(0.5);
    // Call 7 against operators of 9.
    expect(found['unattributed']).toBeCloseTo(-2, 12);
    expect(sum).toBeCloseTo(8, 12);
  });

  test('a clean call that took longer than the profiled one leaves a positive remainder', () => {
    const [found, sum] = bars({ measuredMs: 15, callMs: 14 });
    expect(found).toMatchObject({ ...kernels, 'host.runtime_dispatch': 2, 'host.runtime_call': 1 });
    expect(found['unattributed']).toBeCloseTo(2, 12);
    expect(sum).toBeCloseTo(15, 12);
  });

  test('the last bar is always unattributed', () => {
    expect(stepBars(input).at(-1)!.id).toBe('unattributed');
  });
});
