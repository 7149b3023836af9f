import { expect, test } from 'vitest';
import { memoryChart, timelineChart } from './trace-charts.js';
import { timeline } from './test-series.js';

test('the background of memory has every phase; adjacent steps of one kind are one shade', () => {
  const phases = Array.from({ length: 300 }, (_, step) => ({
    kind: 'decode' as const,
    start_ns: step * 1e6,
    dur_ns: 1e6,
  }));
  const last = { kind: 'prefill' as const, start_ns: 300e6, dur_ns: 5e6 };
  const { shades } = memoryChart(
    {
      allocated: [[0, 1]],
      reserved: [],
      peak: { t_ns: 0, allocated_bytes: 1, phase: null },
    } as unknown as Parameters<typeof memoryChart>[0],
    { density: { phases: [...phases, last] } } as unknown as Parameters<typeof memoryChart>[1],
  );
  expect(shades!.map(({ name, from, to }) => [name, from, to])).toEqual([
    ['decode step', 0, 0.3],
    ['prefill', 0.3, expect.closeTo(0.305, 9)],
  ]);
});

test('a timeline without stages in its time has no lane for them', () => {
  const lanes = (stages: ReturnType<typeof timeline>['stages']) =>
    timelineChart({ ...timeline(), stages }, () => '').lanes;
  const { stages } = timeline();
  expect(stages.length).toBeGreaterThan(0);
  expect(lanes(stages)[0]).toBe('stages');
  expect(lanes([])).not.toContain('stages');
});
