import { expect, it } from 'vitest';
import type { Chart } from '../../views/chart.js';
import { themes } from '../palette.js';
import { optionOf } from './option.js';

const place = { theme: themes.light, width: 900 };

it('labels each of a few categories, on several lines where one has no room', () => {
  const loads = ['synchronous', 'constant 34.83 req/s', 'throughput 512'];
  const chart = (categories: readonly string[]): Chart => ({
    form: 'lines',
    x: { name: 'load', categories },
    panels: [{ unit: 'ms', series: [{ name: 'p50', color: 'ink', points: categories.map(() => [0, 1]) }] }],
  });
  const axisOf = (categories: readonly string[]) =>
    (
      optionOf(chart(categories), { ...place, width: 360 }) as {
        xAxis: { axisLabel: object; nameGap: number }[];
      }
    ).xAxis[0]!;
  expect(axisOf(loads).axisLabel).toMatchObject({ interval: 0, overflow: 'break', width: 82 });
  // "constant", "34.83 req/s" and the name of the axis below.
  expect(axisOf(loads).nameGap - axisOf(['4', '16', '32']).nameGap).toBe(14);
  expect(axisOf(Array.from({ length: 48 }, (_, step) => String(step))).axisLabel).not.toHaveProperty(
    'interval',
  );
});

it('labels times far from the start of a session so that neighbors differ', () => {
  const chart: Chart = {
    form: 'lines',
    x: { name: 'since session start', unit: 's' },
    panels: [
      {
        unit: 'W',
        series: [
          {
            name: 'GPU 0',
            color: 'ink',
            points: [
              [230.861, 1],
              [230.86126, 1],
            ],
          },
        ],
      },
    ],
  };
  const { xAxis } = optionOf(chart, place) as {
    xAxis: { axisLabel: { formatter: (x: number) => string } }[];
  };
  const label = xAxis[0]!.axisLabel.formatter;
  expect([label(230.8611), label(230.86115)]).toEqual(['230.86110\u00a0s', '230.86115\u00a0s']);
});
