import { stripVTControlCharacters } from 'node:util';
import { nbsp, unbroken } from '../../vocabulary/format.js';
import { safeText } from '../safe-text.js';

/** Cells that `text` takes on a terminal; color codes take none. */
export function textWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}

/** Widest line that is still read with ease; a wider terminal shows tables of it, and prose up to here. */
const widestLine = 120;

/** Columns that a summary takes of a terminal of `columns`. */
export const readingWidth = (columns: number): number => Math.min(widestLine, columns);

/**
 * Lines of at most `width` cells, broken at spaces (never inside "4.40 ms", `unbroken`). A longer word (a path, an id, a URL) has a
 * line of its own and stays whole, so that it can be copied: the terminal folds it.
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of unbroken(text).split(/[ \n]+/)) {
    if (line && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  if (line) lines.push(line);
  return lines.map(withPlainSpaces);
}

/** Wrapped text: the first line starts with `first`, the others are indented to match. */
export function hanging(first: string, text: string, width: number): string[] {
  const indent = ' '.repeat(textWidth(first));
  return wrap(text, width - textWidth(first)).map((line, index) => `${index === 0 ? first : indent}${line}`);
}

/** A name on one line, without anything that could steer a terminal. */
export function inert(text: string): string {
  return safeText(text).replaceAll(/[\p{Cc}\p{Cf}\uFFFD]+/gu, ' ');
}

/** Non-breaking spaces did their work in `wrap`; what is printed can be grepped. */
export function withPlainSpaces(text: string): string {
  return text.replaceAll(nbsp, ' ');
}

/** A bar of `value` where `full` takes `width` cells; a small part shows at least a sliver. */
export function textBar(value: number, full: number, width: number): string {
  // Less than a ten-thousandth is the rounding of a sum, not a part of it.
  if (!(full > 0) || !(value / full > 1e-4)) return '';
  const cells = Math.min(width, Math.round((value / full) * width));
  return cells === 0 ? '▏' : '█'.repeat(cells);
}
