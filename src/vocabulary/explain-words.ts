import type { ExplainResult, Finding, WhatIfResult } from '../model/documents/explain.js';

/** Shown with findings of a session without stages (samples, counters, collectives): rules about time were not applicable. */
export const limitNotRecorded =
  'Only a timeline, a benchmark or answered requests show what limits a program.';

/** The same without a finding. */
export const nothingRecorded =
  'No finding: only a timeline, a benchmark or answered requests show what limits a program.';

/** Shown if rules were applicable and found nothing. */
export const nothingSignificant = 'The rules found nothing significant to change.';

/** Whether the session has the data that a rule needs. */
export const isJudged = ({ rules }: Pick<ExplainResult, 'rules'>): boolean =>
  rules.some(({ outcome }) => outcome === 'fired' || outcome === 'not_fired');

/** Shown if no rule found anything: what was recorded, and what is withheld. */
export function nothingFound(data: Pick<ExplainResult, 'rules' | 'withheld' | 'stages'>): string {
  if (isJudged(data)) return data.stages.length === 0 ? nothingRecorded : nothingSignificant;
  return data.withheld.length > 0
    ? 'No finding: everything the rules found is withheld.'
    : 'No finding: the session has none of the data that the rules need.';
}

/** A change with its further text. */
export const changeText = ({ text, details }: Finding['change']): string =>
  details === undefined ? text : `${text} ${details}`;

/** Why a change of `--what-if` does nothing in a stage. */
export const unchangedText = (change: string, why: string): string => `${change} changes nothing: ${why}.`;

/** Times per token of a decode step or per sequence of a prefill; null if the batch stays. */
export function timePerUnit(
  stage: WhatIfResult['stages'][number],
): { unit: 'token' | 'sequence'; from: number; to: number } | null {
  const { per_token_before_ms: token, per_token_after_ms: tokenAfter } = stage;
  if (token !== null && tokenAfter !== null) return { unit: 'token', from: token, to: tokenAfter };
  const { per_sequence_before_ms: sequence, per_sequence_after_ms: sequenceAfter } = stage;
  if (sequence === null || sequenceAfter === null) return null;
  return { unit: 'sequence', from: sequence, to: sequenceAfter };
}
