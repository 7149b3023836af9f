import type { Issue } from '../model/document.js';
import { rangedText, sentenceKey, statesCount } from '../vocabulary/sentence-template.js';
import { formatCount, nbsp } from '../vocabulary/format.js';

const severities = ['error', 'warning', 'info'] as const;

/** Merges equal issues of several launches, with their number and the highest severity, so that they do not hide other issues. */
export function mergeIssues(issues: readonly Issue[]): Issue[] {
  const groups = new Map<string, Issue[]>();
  for (const issue of issues) {
    const key = [issue.code, sentenceKey(issue)].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), issue]);
  }
  return [...groups.values()].map((group): Issue => {
    const { count: _count, sentence: _sentence, ...first } = group[0]!;
    const count = group.reduce((sum, issue) => sum + (issue.count ?? 1), 0);
    const severity = severities.find((highest) => group.some((issue) => issue.severity === highest))!;
    return {
      ...first,
      severity,
      text: rangedText(group),
      ...(count < 2 || statesCount(group[0]!) ? {} : { count }),
    };
  });
}

/** "× 3" for an issue that occurred several times if the text does not state the count; else ''. */
export const timesOf = ({ count = 1 }: Issue): string => (count < 2 ? '' : `×${nbsp}${formatCount(count)}`);
