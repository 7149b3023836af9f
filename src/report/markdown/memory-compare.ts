import type { Document } from '../../model/document.js';
import type { MemoryCompareResult } from '../../model/documents/memory-compare.js';
import { nbsp, noValue } from '../format.js';
import { changeTables, sideWords } from '../memory-compare-words.js';
import { plain } from './explain.js';

/** `memory compare --format md`: for the description of a pull request, or a comment of its CI. */
export function memoryCompareMarkdown({ data, issues, tool_version }: Document<MemoryCompareResult>): string {
  const parts = [
    `## Memory: ${plain(data.base.label)} → ${plain(data.now.label)}`,
    `base: ${plain(sideWords(data.base))}  \nnew: ${plain(sideWords(data.now))}`,
    data.headlines.map(plain).join(' '),
    ...issues.map(({ severity, text }) => `> ${severity}: ${plain(text)}`),
    ...changeTables(data).map(({ title, rows }) => {
      const more = rows[0]!.length > 5;
      return table(
        [title, 'base', 'new', 'difference', '%', ...(more ? ['confidence'] : [])],
        ['---', '---:', '---:', '---:', '---:', ...(more ? ['---'] : [])],
        rows,
      );
    }),
    data.differences.length === 0
      ? 'The configurations are the same.'
      : table(
          ['What differs', 'base', 'new'],
          ['---', '---', '---'],
          data.differences.map(({ label, base, now }) => [label, base ?? noValue, now ?? noValue]),
        ),
    `<sub>inferscope ${tool_version} · GB are 10^9 bytes</sub>`,
  ];
  return `${parts.join('\n\n').replaceAll(nbsp, ' ')}\n`;
}

const table = (head: string[], rule: string[], rows: string[][]): string =>
  [head, rule, ...rows]
    .map((cells) => `| ${cells.map((cell) => (/^-+:?$/.test(cell) ? cell : plain(cell))).join(' | ')} |`)
    .join('\n');
