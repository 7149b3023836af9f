import type { BenchDistribution } from '../../model/documents/bench.js';
import type { MissingFigure } from '../../model/figure.js';
import { meanOverLaunches, orderStatistics, outlierTest, type Repeat } from '../statistics.js';

/**
 * Distribution of repeated values, with the interval over launch means.
 * @param absent why there is no value
 * @param repeats the mean of each repeat if `values` are tokens: tokens of one repeat are dependent, so the interval
 *   within one launch is over these
 * @param processes false if launches are rounds against one process
 */
export function benchDistribution(
  values: readonly Repeat[],
  unit: string,
  source: string,
  absent: MissingFigure,
  repeats: readonly Repeat[] = values,
  processes = true,
): BenchDistribution {
  if (values.length === 0) return absent;
  const numbers = values.map(({ value }) => value);
  const meanFigure = meanOverLaunches(values, unit, source);
  const launches = new Set(values.map(({ launch }) => launch)).size;
  const interval = launches > 1 ? meanFigure : meanOverLaunches(repeats, unit, source);
  const isOutlier = outlierTest(numbers);
  return {
    unit,
    n: numbers.length,
    launches,
    mean: meanFigure.value!,
    ci95: ('ci95' in interval ? interval.ci95 : undefined) ?? null,
    ci95_over_launches: processes && launches > 1,
    ...(launches > 1
      ? { ci95_over: { unit: processes ? ('launches' as const) : ('rounds' as const), n: launches } }
      : repeats.length < values.length
        ? { ci95_over: { unit: 'repeats' as const, n: repeats.length } }
        : {}),
    sd: ('sd' in meanFigure ? meanFigure.sd : undefined) ?? null,
    ...orderStatistics(numbers),
    outliers: numbers.filter(isOutlier).length,
    source,
  };
}
