import { stripVTControlCharacters } from 'node:util';
import { nbsp, keepUnits } from '../../vocabulary/format.js';
import { safeText } from '../safe-text.js';

/** Width of `text` in terminal cells, without color codes. */
export function textWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}

/** Maximum width of prose: longer lines are hard to read. */
const widestLine = 120;

/** Columns used by a summary in a terminal of `columns`. */
export const readingWidth = (columns: number): number => Math.min(widestLine, columns);

/**
 * Lines of at most `width` cells, broken at spaces (never inside "4.40 ms"). A longer word (a path, an id, a URL) gets its own
 * line and is not broken, so that it can be copied: the terminal folds it.
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of keepUnits(text).split(/[ \n]+/)) {
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

/** A name on one line, without characters that control a terminal. */
export function inert(text: string): string {
  return safeText(text).replaceAll(/[\p{Cc}\p{Cf}\uFFFD]+/gu, ' ');
}

/** Replaces no-break spaces after wrapping, so that the output can be grepped. */
export function withPlainSpaces(text: string): string {
  return text.replaceAll(nbsp, ' ');
}

/** A bar of `value` if `full` is `width` cells; a small part is at least a thin bar. */
export function textBar(value: number, full: number, width: number): string {
  // Less than a ten-thousandth is a rounding error of a sum.
  if (!(full > 0) || !(value / full > 1e-4)) return '';
  const cells = Math.min(width, Math.round((value / full) * width));
  return cells === 0 ? '▏' : '█'.repeat(cells);
}
