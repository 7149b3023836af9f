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

/** What stands behind a figure of a baseline. */
export const basisLabels = {
  launches: 'launches',
  repeats: 'repeats, one process',
  interval: 'interval',
  none: 'one value',
} as const;
