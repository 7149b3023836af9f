import type { ServingPoint, ServingResult } from '../../../model/documents/serving.js';
import type { Figure } from '../../../model/figure.js';
import type { Chart } from '../chart.js';
import { type Line, linesOption, markOf } from '../lines.js';
import { byLoad, levelLabel, levelName } from './levels.js';

interface Rate {
  name: string;
  of: (point: ServingPoint) => Figure;
}

/** What a part of the chart draws. */
export const servingRates: Record<'tokens' | 'requests', { unit: string; rates: Rate[] }> = {
  tokens: {
    unit: 'tok/s',
    rates: [
      { name: 'output', of: ({ throughput }) => throughput.output_tokens_per_s },
      { name: 'prompt and output', of: ({ throughput }) => throughput.total_tokens_per_s },
    ],
  },
  requests: {
    unit: 'req/s',
    rates: [
      { name: 'completed', of: ({ throughput }) => throughput.requests_per_s },
      { name: 'within the SLO (goodput)', of: ({ goodput }) => goodput.requests_per_s },
      { name: 'offered', of: ({ throughput }) => throughput.offered_requests_per_s },
    ],
  },
};
export type RatePart = keyof typeof servingRates;

/** Rates of a part that any load has. */
export const knownRates = ({ points }: ServingResult, part: RatePart): Rate[] =>
  servingRates[part].rates.filter(({ of }) => points.some((point) => of(point).value !== null));

/** Throughput against the load: part `tokens` or `requests`. */
export const servingRateChart: Chart<ServingResult> = {
  height: () => 280,
  build: (input) => {
    const part: RatePart = input.part === 'requests' ? 'requests' : 'tokens';
    const points = byLoad(input.result);
    return linesOption(input, {
      categories: points.map(levelLabel),
      xName: levelName(points),
      unit: servingRates[part].unit,
      lines: knownRates(input.result, part).map(({ name, of }, index): Line => ({
        ...markOf(index),
        name,
        values: points.map((point) => {
          const figure = of(point);
          return figure.value === null ? null : { value: figure.value, ci95: figure.ci95 ?? null };
        }),
      })),
    });
  },
};
