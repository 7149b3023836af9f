import type { BaselineVerdict } from '../model/documents/baseline.js';
import type { CompareVerdict } from '../model/documents/bench-compare.js';

/** Verdicts on a metric of two sides: of `bench compare`, and of `baseline check`, which has a tolerance. */
export const verdictLabels: Readonly<Record<CompareVerdict | BaselineVerdict, string>> = {
  worse: 'WORSE',
  better: 'better',
  no_real_difference: 'not significant',
  regression: 'REGRESSION',
  improvement: 'better',
  within_tolerance: 'tolerated',
  unchanged: 'unchanged',
  no_worse: 'no worse',
  inconclusive: 'inconclusive',
  within_process: 'one process',
  no_spread: 'no spread',
  missing: 'one side',
};

export const verdictMeanings: typeof verdictLabels = {
  worse: 'significantly worse',
  better: 'significantly better',
  no_real_difference: 'the difference is within the spread of repeated runs',
  regression: 'significantly worse than the baseline, by more than the tolerance',
  improvement: 'significantly better than the baseline',
  within_tolerance: 'significantly worse than the baseline, within the tolerance',
  unchanged: 'no change beyond the tolerance in either direction',
  no_worse: 'not worse by more than the tolerance; it may be better',
  inconclusive: 'it may be worse by more than the tolerance: the interval is too wide to decide',
  within_process: 'repeats of one process only: not comparable between runs',
  no_spread: 'one side has a single value, or a value is 0: no interval',
  missing: 'the metric is on one side only',
};

/** What the interval of a baseline figure is computed over. */
export const basisLabels = {
  launches: 'launches',
  repeats: 'repeats, one process',
  interval: 'mean and interval only',
  none: 'one value',
} as const;
