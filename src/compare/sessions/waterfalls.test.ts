import { expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { figure, missing } from '../../model/figure.js';
import { scaledSides } from '../../facts/waterfall/recorded-bars.js';
import { comparedWaterfalls } from './waterfalls.js';

const bar = (id: string, ms: number) => ({ id, ms, label: id }) as StageWaterfall['bars'][number];
const decode = (cleanMs: number | null, bars: StageWaterfall['bars']) =>
  ({
    kind: 'decode',
    source: 'operators',
    clean_ms: cleanMs === null ? missing('no_clean_stage', 'hand') : figure(cleanMs, 'ms', 'hand'),
    measured_ms: figure(20, 'ms', 'hand'),
    roofline_ms: missing('no_model', 'hand'),
    bars,
  }) as StageWaterfall;

// 20 ms under the profiler, of which 5 remain without it.
const scaled = {
  waterfalls: [decode(5, [bar('kernels.gemm', 5), bar('profiler_overhead', 15)])],
};
const profiled = { waterfalls: [decode(null, [bar('kernels.gemm', 20)])] };

test('operators under the profiler are compared as recorded, else as scaled to the time without it', () => {
  const gemm = (...sides: Parameters<typeof comparedWaterfalls>[0]) => {
    const [stage] = comparedWaterfalls(sides);
    return [stage!.profiled, stage!.bars.map(({ id, values }) => [id, ...values])];
  };
  const recorded = { waterfalls: [decode(5, [bar('kernels.gemm', 20)])] };
  expect(gemm(profiled, recorded)).toEqual([true, [['kernels.gemm', 20, 20]]]);
  expect(gemm(scaled, scaled)).toEqual([false, [['kernels.gemm', 5, 5]]]);
});

test('sides with scaled operators, by whether a side has no time without the profiler', () => {
  expect(scaledSides([profiled, scaled], true)).toEqual([scaled]);
  expect(scaledSides([profiled, scaled], false)).toEqual([]);
  expect(scaledSides([scaled, scaled], false)).toEqual([scaled, scaled]);
});
