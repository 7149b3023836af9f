import type { ServingResult } from '../../../model/documents/serving.js';
import { byLoad, knownRates, type RatePart, rateParts } from '../../../views/serving-series.js';
import { loadLabel } from '../../../vocabulary/loads.js';
import type { Chart } from '../chart.js';
import { type Line, lineKey, linesOption, markOf } from '../lines.js';
import { loadAxis } from './axis.js';

const partOf = (part: string): RatePart => (part === 'requests' ? 'requests' : 'tokens');

/** Throughput against the load: part `tokens` or `requests`. */
export const servingRateChart: Chart<ServingResult> = {
  height: () => 280,
  key: (result, part) => lineKey(knownRates(result, partOf(part)).map(({ name }) => name)),
  build: (input) => {
    const part = partOf(input.part);
    const points = byLoad(input.result);
    return linesOption(input, {
      categories: points.map(({ load }) => loadLabel(load)),
      xName: loadAxis(points),
      unit: rateParts[part].unit,
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
