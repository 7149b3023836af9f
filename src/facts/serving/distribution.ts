import type { Distribution } from '../../model/documents/serving.js';
import { missing } from '../../model/figure.js';
import { interval95, mean, standardDeviation } from '../../model/statistics.js';
import { orderStatistics } from '../statistics.js';

const batchCount = 10;

/** @param values in time order */
export function distribution(
  values: readonly number[],
  unit: string,
  source: string,
  absent: string,
): Distribution {
  if (values.length === 0) return missing('no_values', absent);
  return {
    unit,
    n: values.length,
    mean: mean(values),
    sd: values.length < 2 ? null : standardDeviation(values),
    ci95: requestInterval(values),
    ...orderStatistics(values),
    source,
  };
}

/**
 * The 95 % interval of a mean over requests. Requests of one run share queues, so they are not independent: Student's t
 * over the means of ten consecutive batches (batch means; Law, Simulation Modeling and Analysis, ch. 9).
 * @param values in time order
 * @returns null below two requests per batch
 */
export function requestInterval(values: readonly number[]): [number, number] | null {
  if (values.length < 2 * batchCount) return null;
  const means = Array.from({ length: batchCount }, (_, batch) =>
    mean(
      values.slice(
        Math.floor((batch * values.length) / batchCount),
        Math.floor(((batch + 1) * values.length) / batchCount),
      ),
    ),
  );
  return interval95(mean(values), standardDeviation(means), batchCount);
}
