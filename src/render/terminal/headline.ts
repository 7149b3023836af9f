import type { Block } from '../../views/block.js';
import { plainText } from '../value.js';
import { color } from './color.js';
import { hanging, inert, textWidth } from './text.js';

/** Sentences, then aligned rows; a narrow terminal drops the third cell first. */
export function headlineLines(
  { sentences, rows = [] }: Extract<Block, { type: 'headline' }>,
  width: number,
): string[] {
  const sentenceLines = sentences.flatMap((sentence) => hanging('  ', inert(sentence), width));
  if (rows.length === 0) return sentenceLines;
  const cells = rows.map((row) => row.map((cell) => inert(plainText(cell))));
  const wide = cells[0]!.map((_, column) => Math.max(...cells.map((row) => textWidth(row[column] ?? ''))));
  const used = wide
    .map((columnWidth, column) => ({ column, columnWidth }))
    .filter(({ columnWidth }) => columnWidth > 0);
  const fits = (columns: typeof used) =>
    columns.reduce((sum, { columnWidth }) => sum + columnWidth + 3, -1) <= width;
  const shown = fits(used) ? used : used.filter(({ column }) => column !== 2);
  const lines = cells.flatMap((row) => {
    if (fits(shown)) {
      const line = shown
        .map(({ column, columnWidth }) => (row[column] ?? '').padEnd(columnWidth))
        .join('   ');
      return [`  ${line.trimEnd()}`];
    }
    return hanging('  ', row.filter((cell) => cell !== '').join(' · '), width);
  });
  return [
    ...sentenceLines,
    ...(sentenceLines.length > 0 ? [''] : []),
    ...lines.map((line) => color.bold(line)),
  ];
}
