import { expect, it } from 'vitest';
import { profileReport } from './html/profile.js';
import { testProfile } from './test-profile.js';
import { thinned } from '../model/thinned.js';
import { forPage } from './thin.js';

it('thins evenly, first and last kept, short series untouched', () => {
  expect(thinned([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)).toEqual([0, 4, 8]);
  const short = [1, 2, 3];
  expect(thinned(short, 3)).toEqual(short);
});

it('an hour at 20 Hz on 128 cores stays a page under 3 MB', () => {
  const made = testProfile();
  const points = Array.from({ length: 72_000 }, (_, index): [number, number] => [
    index * 50 + 0.123456,
    index / 7,
  ]);
  made.data.telemetry!.series = Array.from({ length: 128 }, (_, core) => ({
    scope: `cpu${core}`,
    metric: 'utilization_percent',
    unit: '%',
    points,
  }));
  made.data.memory!.series = points.map(([t_ms, bytes]) => ({ t_ms, bytes: bytes * 1e5 }));
  const { telemetry, memory } = forPage(made).data;
  expect(telemetry!.series.length).toBe(128);
  expect(telemetry!.series[5]!.points.at(-1)).toEqual(points.at(-1));
  expect(memory!.series.length).toBe(2000);
  // The client script is about 0.65 MB more.
  expect(profileReport(made, { clientScript: '' }).length).toBeLessThan(2.3e6);
});
