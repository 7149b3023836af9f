import type { Document } from '../../model/document.js';
import type { MemoryCompareResult } from '../../model/documents/memory-compare.js';
import { noValue } from '../format.js';
import { changeTables, sideWords } from '../memory-compare-words.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

/** `memory compare`: what changed most first, then every figure; at most 100 columns, nothing lost without colour. */
export function memoryCompareText(
  { data, issues, tool_version }: Document<MemoryCompareResult>,
  columns: number,
): string {
  const width = readingWidth(columns);
  const lines = [
    `inferscope ${tool_version} · memory compare`,
    ...hanging('  base: ', inert(sideWords(data.base)), width),
    ...hanging('  new:  ', inert(sideWords(data.now)), width),
    '',
    ...data.headlines.flatMap((text) => hanging('  ', inert(text), width)),
    ...changeTables(data).flatMap(({ title, rows }) => [
      '',
      textTable(
        [
          { head: title, flexible: true },
          right('base'),
          right('new'),
          right('difference'),
          right('%'),
          ...(rows[0]!.length > 5 ? [{ head: 'confidence' }] : []),
        ],
        rows.map((cells) => cells.map(inert)),
        { width },
      ),
    ]),
    ...differences(data, width),
    ...issues.flatMap(({ severity, text }, index) => [
      ...(index === 0 ? [''] : []),
      ...hanging(
        severity === 'info' ? '  note: ' : `  ${colour.yellow(`${severity}:`)} `,
        inert(text),
        width,
      ),
    ]),
  ];
  return withPlainSpaces(lines.join('\n'));
}

function differences({ differences: rows }: MemoryCompareResult, width: number): string[] {
  if (rows.length === 0) return ['', '  The configurations are the same.'];
  return [
    '',
    textTable(
      [{ head: 'What differs' }, { head: 'base' }, { head: 'new', flexible: true }],
      rows.map(({ label, base, now }) => [inert(label), inert(base ?? noValue), inert(now ?? noValue)]),
      { width },
    ),
  ];
}
