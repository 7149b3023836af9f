import type { SampledMetric } from '../../model/documents/baseline.js';

/** TPOT of one launch per value, ms. */
export const metric = (values: number[], change: Partial<SampledMetric> = {}): SampledMetric => ({
  id: 'tpot_ms',
  point: null,
  name: 'tpot_ms',
  unit: 'ms',
  better: 'lower',
  value: values.reduce((sum, value) => sum + value, 0) / values.length,
  basis: values.length > 1 ? 'launches' : 'none',
  values: values.length > 1 ? values : [],
  interval: null,
  source: 'iterations',
  ...change,
});
