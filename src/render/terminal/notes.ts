import type { Issue } from '../../model/document.js';
import type { Text } from '../../views/text.js';
import { plural } from '../../vocabulary/format.js';
import { severityLabels } from '../../vocabulary/severities.js';
import { mergeIssues } from '../notices.js';
import { color } from './color.js';
import type { Detail } from './less.js';
import { coloredText } from './colored-text.js';
import { hanging, inert } from './text.js';

/** Maximum issues in a summary by its room, without notes; the rest is counted. */
const briefIssues = { '-3': 0, '-2': 1, '-1': 1, 0: 2, 1: 3 };

export function issueLines(issues: readonly Issue[], width: number, level: Detail): string[] {
  const due = mergeIssues(issues).filter(({ severity }) => level > 1 || severity !== 'info');
  const shown = level === 2 || level === 3 ? due : due.slice(0, briefIssues[level]);
  if (shown.length === 0 && due.length > 0) return [`  ${plural(due.length, 'warning')} in the report`];
  return [
    ...shown.flatMap(({ severity, text }) => hanging(`  ${severityWord(severity)} `, inert(text), width)),
    ...moreLine(due.length - shown.length, 'more warning'),
  ];
}

function severityWord(severity: Issue['severity']): string {
  const word = `${severityLabels[severity]}:`;
  return severity === 'error' ? color.red(word) : severity === 'warning' ? color.yellow(word) : word;
}

export const noteLines = (items: readonly Text[], brief = items.length, width: number): string[] => [
  ...items.slice(0, brief).flatMap((item) => {
    // In a list, wrapped lines align with the text of their item.
    const [, lead = '', rest = ''] = /^(\s*(?:[-*•]\s+|\d+[.)]\s+)?)(.*)$/s.exec(coloredText(item)) ?? [];
    return hanging(`  ${lead}`, rest, width);
  }),
  ...moreLine(items.length - brief, 'more line'),
];

/** @param what in the singular, e.g. "more row" */
export const moreLine = (more: number, what: string): string[] =>
  more > 0 ? [`  … and ${plural(more, what)}`] : [];
