import type { BaselineVerdict } from '../model/documents/baseline.js';
import type { CompareVerdict } from '../model/documents/bench-compare.js';

/** What was found of a metric of two sides: of `bench compare`, and of `baseline check`, which tolerates a share. */
export const verdictLabels: Readonly<Record<CompareVerdict | BaselineVerdict, string>> = {
  worse: 'WORSE',
  better: 'better',
  no_real_difference: 'not real',
  regression: 'REGRESSION',
  improvement: 'better',
  within_tolerance: 'tolerated',
  unchanged: 'unchanged',
  no_worse: 'no worse',
  inconclusive: 'open',
  within_process: 'no claim',
  no_spread: 'no claim',
  missing: 'one side',
};

export const verdictMeanings: typeof verdictLabels = {
  worse: 'really different, in the bad direction',
  better: 'really different, in the good direction',
  no_real_difference: 'the difference is within what repeated runs differ by',
  regression: 'worse than the baseline by more than the tolerance, and really different',
  improvement: 'better than the baseline by more than the tolerance, and really different',
  within_tolerance: 'really different, by no more than the tolerance',
  unchanged: 'no change beyond the tolerance, in either direction',
  no_worse: 'not worse by more than the tolerance; it may be better',
  inconclusive: 'it may be worse by more than the tolerance: the interval is too wide to decide',
  within_process: 'repeats of one process: no claim about another run',
  no_spread: 'one value on a side: no claim',
  missing: 'the metric is on one side only',
};

/** What stands behind a figure of a baseline. */
export const basisLabels = {
  launches: 'launches',
  repeats: 'repeats, one process',
  interval: 'interval',
  none: 'one value',
} as const;
