import type { Level, View } from '../../views/block.js';

/** 0: a summary with little room: warnings take a line each, tables are without notes; −1: and of three rows. */
export type Detail = -1 | 0 | Level;

export const shownAt =
  (level: Detail) =>
  ({ level: own = 1, terminal = true }: { level?: Level; terminal?: boolean }): boolean =>
    terminal && own <= Math.max(1, level);

export interface Less {
  view: View;
  level: Detail;
}

/** Without its last section, then what leads them, then rows of the first, then that; the report has all. */
export function less({ view, level }: Less): Less | null {
  const { lead, sections } = view;
  const isShown = shownAt(level);
  const other = lead.findLastIndex((block) => block.t !== 'issues' && isShown(block));
  const shown = sections.filter(isShown);
  const last = shown.at(-1);
  if (shown.length < 2 && other >= 0) return { level, view: { ...view, lead: lead.toSpliced(other, 1) } };
  if (!last) return null;
  return shown.length === 1 && level === 0
    ? { level: -1, view }
    : { level, view: { ...view, sections: sections.slice(0, sections.indexOf(last)) } };
}
