import type { VerifyResult } from '../model/documents/explain.js';

/** What became of a finding after a change. */
export const changeOutcomes: Readonly<Record<VerifyResult['changes'][number]['outcome'], string>> = {
  gone: 'gone',
  smaller: 'smaller',
  still_there: 'still there',
  new: 'new',
  not_judged: 'not judged',
};
