import { expect, test } from 'vitest';
import { figure } from '../model/figure.js';
import type { StageWaterfall } from '../model/documents/explain.js';
import { briefBars, leadingStages, lostMs, shownBars, stageName, timeLines } from './explain-series.js';
import { testWaterfall } from './test-explain.js';

const stage = (change: Partial<StageWaterfall>): StageWaterfall => ({ ...testWaterfall(), ...change });

test('shows steps first, and only the benchmark points that lose the most time; a request is one line', () => {
  const names = (stages: readonly StageWaterfall[]) => stages.map(stageName);
  const once = { instances: 1, measured_ms: figure(900, 'ms', 'measured') };
  const capture = [
    stage({ kind: 'load', ...once }),
    stage({ kind: 'request', ...once }),
    stage({ kind: 'prefill', instances: 1 }),
    stage({ kind: 'other', name: 'layer #', ...once }),
    stage({ kind: 'decode' }),
  ];
  const leading = leadingStages({ stages: capture });
  expect(names(leading.full)).toEqual(['decode step', 'prefill']);
  expect(names(leading.brief)).toEqual(['request', 'loading', 'layer #']);
  expect(stageName(stage({ kind: 'request', point: '4 req/s', from_schedule: true }))).toBe(
    'request from schedule at 4 req/s',
  );
  const points = [1, 8, 4].map((instances) => stage({ point: `b${instances}`, instances }));
  expect(names(leadingStages({ stages: points }).full)).toEqual(['decode step at b1', 'decode step at b8']);
  // 64 steps of 23.31 ms with a roofline of 0.51 ms.
  expect(lostMs(testWaterfall())).toBeCloseTo(64 * 22.8, 9);
});

test('a summary has the largest bars and the others as one, with the same sum', () => {
  const all = testWaterfall();
  const sum = (bars: readonly { ms: number }[]) => bars.reduce((total, { ms }) => total + ms, 0);
  const brief = briefBars(all, 2);
  expect(brief.map(({ id }) => id)).toEqual(['roofline', 'launch_overhead', 'host.program', 'smaller']);
  expect(brief.at(-1)!.mergedCount).toBe(all.bars.length - 3);
  expect(sum(brief)).toBeCloseTo(sum(shownBars(all)), 9);
});

test('a profiler that added nothing is not said to have added a negative time', () => {
  const names = (clean: number, profiled: number, added: number) => {
    const bar = {
      ...testWaterfall().bars[0]!,
      id: 'profiler_overhead',
      label: 'added by the profiler',
      ms: added,
    };
    const clean_ms = figure(clean, 'ms', 'clean');
    const measured_ms = figure(profiled, 'ms', 'profiled');
    const lines = timeLines(stage({ clean_ms, measured_ms, bars: [...testWaterfall().bars, bar] }));
    return lines.map(({ name }) => name);
  };
  expect(names(60, 100, 40)).toEqual(['measured', 'added by the profiler', 'under the profiler']);
  // By chance, as the clean execution took 1 % longer.
  expect(names(101, 100, -1)).toEqual(['measured', 'faster under the profiler', 'under the profiler']);
});
