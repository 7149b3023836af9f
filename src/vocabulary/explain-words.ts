import { plural } from './format.js';
import type { ExplainResult, Finding, StageWaterfall } from '../model/documents/explain.js';

/** Where the session has no stages (samples, counters, collectives): rules about time had nothing to judge. */
export const nothingRecorded =
  'Nothing significant in what was recorded; only a timeline or a benchmark shows what limits a program.';

/** Where no rule found anything: how many had something to judge by, and what is not claimed. */
export function nothingFound({
  rules,
  withheld,
  stages,
}: Pick<ExplainResult, 'rules' | 'withheld' | 'stages'>): string {
  const looked = rules.filter(({ outcome }) => outcome === 'fired' || outcome === 'not_fired').length;
  if (looked > 0 && stages.length === 0) return nothingRecorded;
  if (looked > 0) return `Nothing significant to change (${plural(looked, 'rule')} applied).`;
  return withheld.length > 0
    ? 'No finding: all that the rules found is withheld.'
    : 'No finding: the session has none of the data that the rules need.';
}

/** A change with all that is said of it. */
export const changeText = ({ text, more }: Finding['change']): string =>
  more === undefined ? text : `${text} ${more}`;

/** Whether the bars are of the slowest rank, or of one that takes about as long and that the others wait for. */
export const slowestFirst = ({ ranks }: Pick<StageWaterfall, 'ranks'>): boolean =>
  ranks.every(({ measured_ms }) => measured_ms <= ranks[0]!.measured_ms);
