import { expect, test } from 'vitest';
import { nextLevel, type SweepPoint } from './sweep.js';

/** Runs a sweep against a server given as a function of the load. */
function sweep(
  server: (level: number) => Partial<SweepPoint>,
  options: Partial<Parameters<typeof nextLevel>[1]> = {},
): number[] {
  const points: SweepPoint[] = [];
  const settings = { from: 1, max: 256, integers: true, slo: false, ...options };
  for (let level = nextLevel(points, settings); level !== null; level = nextLevel(points, settings)) {
    const answer = { output_rate: 0, failed_share: 0, meets_slo: null, stopped: false };
    points.push({ level, ...answer, ...server(level) });
  }
  return points.map(({ level }) => level);
}

test('loads double until doubling gives nothing', () => {
  // A server that is full at 10 users: the load after 16 gives no more.
  expect(sweep((level) => ({ output_rate: Math.min(level, 10) * 100 }))).toEqual([1, 2, 4, 8, 16, 32]);
  expect(sweep((level) => ({ output_rate: level }), { max: 20 })).toEqual([1, 2, 4, 8, 16]);
  expect(sweep((level) => ({ output_rate: level, failed_share: level > 3 ? 0.2 : 0 }))).toEqual([1, 2, 4]);
  expect(sweep((level) => ({ output_rate: level, stopped: level === 2 }))).toEqual([1, 2]);
});

test('with an SLO halves the gap between the highest load that met it and the lowest that missed it', () => {
  const server = (limit: number) => (level: number) => ({ output_rate: level, meets_slo: level <= limit });
  // 13 users meet it: missed first at 16, then 12 (met), 14 (missed), 13 (met). No value is left between 13 and 14.
  expect(sweep(server(13), { slo: true })).toEqual([1, 2, 4, 8, 16, 12, 14, 13]);
  // Rates are not integers; four halvings leave a sixteenth of the gap.
  const rates = sweep(server(5.3), { slo: true, integers: false, from: 1 });
  expect(rates).toEqual([1, 2, 4, 8, 6, 5, 5.5, 5.25]);
  // Missed at the first load: rates are halved towards zero, and a sweep of users ends at one.
  expect(sweep(server(0.3), { slo: true })).toEqual([1]);
  expect(sweep(server(0.3), { slo: true, integers: false })).toEqual([1, 0.5, 0.25, 0.375, 0.313]);
});
