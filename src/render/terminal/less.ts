import type { Level, View } from '../../views/block.js';

/**
 * 0: a summary with little room: two warnings, tables without notes; −1: one warning, tables of three rows; −2: the first finding without
 * its command; −3: warnings are only counted.
 */
export type Detail = -3 | -2 | -1 | 0 | Level;

interface Visibility {
  level?: Level;
  terminal?: boolean;
  summary?: boolean;
}

export const shownAt =
  (level: Detail) =>
  ({ level: blockLevel = 1, terminal = true, summary = false }: Visibility): boolean =>
    terminal && blockLevel <= Math.max(1, level) && (!summary || level < 2);

export interface DetailedView {
  view: View;
  level: Detail;
}

const below: Record<Detail, Detail | null> = { 3: 2, 2: 1, 1: 0, 0: -1, '-1': -2, '-2': -3, '-3': null };

/**
 * The next shorter version: without the last section, then without the lead, then with fewer rows and commands, then fewer warnings; the
 * report has all.
 */
export function shorter({ view, level }: DetailedView): DetailedView | null {
  const { lead, sections } = view;
  const isShown = shownAt(level);
  const other = lead.findLastIndex((block) => block.type !== 'issues' && isShown(block));
  const shown = sections.filter(isShown);
  const last = shown.at(-1);
  if (shown.length < 2 && other >= 0) return { level, view: { ...view, lead: lead.toSpliced(other, 1) } };
  const lower = below[level];
  if (!last) return lower === null ? null : { level: lower, view };
  return shown.length === 1 && lower !== null && level > -2
    ? { level: lower, view }
    : { level, view: { ...view, sections: sections.slice(0, sections.indexOf(last)) } };
}
