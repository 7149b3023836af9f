import type { Bars, BarSide, Block } from '../../views/block.js';
import { formatColumn, formatMs, formatPart, isPositive, nbsp, noValue } from '../../vocabulary/format.js';
import { plainText } from '../value.js';
import { color } from './color.js';
import type { Detail } from './less.js';
import { textTable } from './table.js';
import { hanging, inert, textBar, textWidth } from './text.js';

const barCells = 12;
const pairCells = 8;
const minBar = 4;
/** Cells of a bar's share, with the gap after it. */
const shareWidth = 9;

/**
 * A waterfall: names, ms and bars on one scale. Two sides are shown with their difference; more sides as their table, which `draw` makes.
 */
export function barLines(
  block: Bars,
  width: number,
  level: Detail,
  draw: (block: Block) => string[],
): string[] {
  const { title, sides, behind } = block;
  const [first, second] = sides;
  if (!first) return [];
  return [
    ...hanging('  ', inert(plainText(title)), width).map((line) => color.bold(line)),
    ...(level > 1 ? [''] : []),
    ...(!second
      ? sideLines(first, width, level)
      : sides.length === 2
        ? pairLines(first, second, width)
        : draw(behind)),
  ];
}

function sideLines({ totals, ...all }: BarSide, width: number, level: Detail): string[] {
  const bars = (level < 2 && all.brief) || all.bars;
  const full = Math.max(...bars.map(({ ms }) => ms ?? 0), 0);
  const nameWidth = Math.max(12, ...[...bars, ...totals].map(({ name }) => textWidth(inert(name)))) + 1;
  // A narrow terminal first drops the gap before the numbers, then the bars, then the notes.
  const beforeMs = 4 + nameWidth;
  const { text, unit } = timeColumn(totals[0]?.ms ?? full, all.halfInterval);
  const msWidth = Math.max(
    ...[...bars, ...totals].map(({ ms }) => textWidth(text(ms))),
    Math.min(9, width - beforeMs - 3),
  );
  const room = width - beforeMs - msWidth - 5;
  const shares = room - shareWidth >= minBar;
  const barWidth = shares ? room - shareWidth : room;
  const cells = barWidth < minBar ? 0 : Math.min(barCells, barWidth);
  const timed = (name: string, ms: number | null) =>
    `    ${inert(name).padEnd(nameWidth)}${text(ms).padStart(msWidth)}${nbsp}${unit}`;
  const total = totals[0]?.ms ?? 0;
  const share = (ms: number | null) =>
    shares ? (ms !== null && total > 0 ? formatPart(ms, total) : '').padStart(shareWidth - 2) + '  ' : '';
  return [
    ...bars.flatMap(({ name, ms, notes = [] }) => {
      const first = `${timed(name, ms)}  ${share(ms)}${cells === 0 ? '' : textBar(ms ?? 0, full, cells).padEnd(cells)}  `;
      const noteTexts = notes.map((note) => inert(plainText(note)));
      const room = width - textWidth(first);
      const fits = (count: number) => textWidth(noteTexts.slice(0, count).join(', ')) <= room;
      const count = [2, 1].find((lines) => lines <= noteTexts.length && fits(lines)) ?? 0;
      const line = `${first}${noteTexts.slice(0, count).join(', ')}`.trimEnd();
      // Counts are dropped without room; a name or a sentence gets its own line.
      return count === 0 && typeof notes[0] === 'string'
        ? [line, ...hanging('      ', noteTexts[0]!, width)]
        : [line];
    }),
    ...totalLines(totals, timed, level),
  ];
}

/** In a summary one line: the first total, and the last in brackets. */
function totalLines(
  totals: BarSide['totals'],
  timed: (name: string, ms: number | null) => string,
  level: Detail,
): string[] {
  const [first, ...others] = totals.map(({ name, ms }) => timed(name, ms));
  const last = totals.at(-1);
  if (first === undefined || last === undefined) return [];
  if (level > 1 || others.length === 0) return [first, ...others];
  return [`${first}  (${formatMs(last.ms)} ${inert(last.name)})`];
}

/** Both sides on one scale, ms, and their changes. */
function pairLines(first: BarSide, second: BarSide, width: number): string[] {
  const bars = [...first.bars, ...second.bars];
  const full = Math.max(...bars.map(({ ms }) => ms ?? 0), 0);
  const half = Math.max(first.halfInterval ?? 0, second.halfInterval ?? 0);
  const total = Math.max(first.totals[0]?.ms ?? 0, second.totals[0]?.ms ?? 0);
  const { text, unit } = timeColumn(total, half);
  const change = (ms: number) => (isPositive(ms, text(ms)) ? `+${text(ms)}` : text(ms));
  const rows = (kind: 'bars' | 'totals') =>
    first[kind].map(({ name, ms }, index) => {
      const otherMs = second[kind][index]!.ms;
      const drawn = (value: number | null) =>
        kind === 'bars' ? textBar(value ?? 0, full, pairCells).padEnd(pairCells) : '';
      const difference = ms === null || otherMs === null ? noValue : change(otherMs - ms);
      return [inert(name), text(ms), drawn(ms), text(otherMs), drawn(otherMs), difference];
    });
  const right = (head: string) => ({ head, align: 'right' as const });
  return textTable(
    [
      { head: unit, flexible: true },
      right(inert(first.label)),
      { head: '', leaveOut: 0 },
      right(inert(second.label)),
      { head: '', leaveOut: 1 },
      right('change'),
    ],
    [...rows('bars'), ...rows('totals')],
    { width, indent: 4 },
  ).split('\n');
}

/** The unit of all times of a waterfall, and their text without it. */
function timeColumn(totalMs: number, half: number | null = null) {
  const text = (ms: number | null): string =>
    ms === null ? noValue : formatColumn([ms], 'ms', totalMs, half).texts[0]!;
  return { text, unit: formatColumn([], 'ms', totalMs).unit };
}
