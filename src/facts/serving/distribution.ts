import type { Distribution } from '../../model/documents/serving.js';
import { missing } from '../../model/figure.js';
import { interval95, mean, standardDeviation } from '../../model/statistics.js';
import { orderStatistics } from '../statistics.js';

const batches = 10;

/**
 * Requests of one run share queues, so they are not independent: the interval is Student's t over
 * the means of ten consecutive batches (batch means; Law, Simulation Modeling and Analysis, ch. 9).
 * @param values in the order of time
 */
export function distribution(
  values: readonly number[],
  unit: string,
  source: string,
  absent: string,
): Distribution {
  if (values.length === 0) return missing('no_values', absent);
  const center = mean(values);
  return {
    unit,
    n: values.length,
    mean: center,
    sd: values.length < 2 ? null : standardDeviation(values),
    ci95: values.length < 2 * batches ? null : batchInterval(values, center),
    ...orderStatistics(values),
    source,
  };
}

function batchInterval(values: readonly number[], center: number): [number, number] {
  const means = Array.from({ length: batches }, (_, batch) =>
    mean(
      values.slice(
        Math.floor((batch * values.length) / batches),
        Math.floor(((batch + 1) * values.length) / batches),
      ),
    ),
  );
  return interval95(center, standardDeviation(means), batches);
}
