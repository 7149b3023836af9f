import type { VerifyResult } from '../model/documents/explain.js';

/** Outcome of a finding after a change. */
export const changeOutcomes: Readonly<Record<VerifyResult['changes'][number]['outcome'], string>> = {
  gone: 'gone',
  smaller: 'smaller',
  still_there: 'still there',
  new: 'new',
  not_judged: 'not judged',
};

export const changeOutcomeMeanings: typeof changeOutcomes = {
  gone: 'found before the change and not after it',
  smaller: 'found on both sides, with less affected time after the change',
  still_there: 'found on both sides with about the same affected time',
  new: 'found only after the change',
  not_judged: 'withheld in the session after the change, or it has no data to judge it',
};

/** Where the achieved gain of a graded finding is, seen from the expected interval. */
export function gainPlace({
  as_expected: isExpected,
  achieved_ms: achieved,
  low_ms: low,
  high_ms: high,
}: Pick<VerifyResult['changes'][number], 'as_expected' | 'achieved_ms' | 'low_ms' | 'high_ms'>): string {
  const isAbove = (achieved ?? 0) > (high ?? 0);
  if (!isExpected) return isAbove ? 'above' : 'below';
  return isAbove || (achieved ?? 0) < (low ?? 0) ? 'within its own error of' : 'within';
}
