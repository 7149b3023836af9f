import type { ExplainResult, StageWaterfall } from '../model/documents/explain.js';

/** Said where no rule found anything: how many had something to judge by. */
export function nothingFound(rules: ExplainResult['rules']): string {
  const looked = rules.filter(({ outcome }) => outcome !== 'not_applicable').length;
  if (looked === 0) return 'No rule could look at this session: it holds nothing that they judge by.';
  return `Nothing significant: ${looked} rule${looked === 1 ? '' : 's'} looked, none found anything to change.`;
}

/** Whether the bars are of the slowest rank, or of one that takes about as long and that the others wait for. */
export const slowestFirst = ({ ranks }: Pick<StageWaterfall, 'ranks'>): boolean =>
  ranks.every(({ measured_ms }) => measured_ms <= ranks[0]!.measured_ms);
