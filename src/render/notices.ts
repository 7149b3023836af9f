import type { Issue } from '../model/document.js';
import { rangedText, sayingKey } from '../vocabulary/said.js';
import { formatCount, nbsp } from '../vocabulary/format.js';

/** Issues that say the same of several launches as one, with their number: five of a kind hide what is said once. */
export function collapsed(issues: readonly Issue[]): Issue[] {
  const groups = new Map<string, Issue[]>();
  for (const issue of issues) {
    const key = [issue.severity, issue.code, sayingKey(issue)].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), issue]);
  }
  return [...groups.values()].map((group): Issue => {
    const { count: firstCount, said, ...first } = group[0]!;
    const count = group.reduce((sum, issue) => sum + (issue.count ?? 1), 0);
    // A text that states its count has it as an argument.
    const counted = firstCount !== undefined && said?.args.includes(firstCount);
    return { ...first, text: rangedText(group), ...(count < 2 || counted ? {} : { count }) };
  });
}

/** "× 3" where something happened several times and the text does not say how often; '' otherwise. */
export const timesOf = ({ count = 1 }: Issue): string => (count < 2 ? '' : `×${nbsp}${formatCount(count)}`);
