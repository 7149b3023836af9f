import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { expect, test } from 'vitest';
import { type ErrorCode, exitCodeOf } from '../model/errors.js';
import { recordLineSchema } from '../model/record.js';
import { derivedMarkdown, describedTables, tablesMarkdown } from './table-schema.js';

const file = new URL('../../docs/formats.md', import.meta.url);

function errorCodesMarkdown(): string {
  const byExit = new Map<number, string[]>();
  for (const code of Object.keys(exitCodeOf) as ErrorCode[]) {
    byExit.set(exitCodeOf[code], [...(byExit.get(exitCodeOf[code]) ?? []), `\`${code}\``]);
  }
  const rows = [...byExit].map(([exit, codes]) => `| ${exit} | ${codes.join(', ')} |`);
  return ['| exit code | codes |', '| --- | --- |', ...rows].join('\n');
}

/** The text between a marker line and its end marker, replaced when UPDATE_DOCS is set. */
function generated(begin: string, end: string, wanted: string): string {
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf('\n', text.indexOf(begin)) + 1;
  const to = text.indexOf(end);
  if (process.env['UPDATE_DOCS']) {
    writeFileSync(file, `${text.slice(0, from)}\n${wanted}\n\n${text.slice(to)}`);
    return wanted;
  }
  return text.slice(from, to).trim();
}

test.each(['recorded', 'derived'] as const)(
  'docs/formats.md states the %s tables as they are (UPDATE_DOCS=1 rewrites it)',
  (which) => {
    const wanted = which === 'recorded' ? tablesMarkdown() : derivedMarkdown();
    expect(generated(`<!-- ${which} tables:`, `<!-- end of ${which} tables -->`, wanted)).toBe(wanted);
  },
);

test('docs/formats.md states the error codes as they are (UPDATE_DOCS=1 rewrites it)', () => {
  const wanted = errorCodesMarkdown();
  expect(generated('<!-- error codes:', '<!-- end of error codes -->', wanted)).toBe(wanted);
});

test('the recording protocol’s examples are valid lines, one of each type', () => {
  const examples = [...readFileSync(file, 'utf8').matchAll(/```json\n(\{"v":1.*)\n```/g)].map(([, line]) =>
    recordLineSchema.parse(JSON.parse(line ?? '')),
  );
  expect(examples.map(({ type }) => type).sort()).toEqual(
    recordLineSchema.options.map((option) => option.shape.type.value).sort(),
  );
});

test('every table and column has its meaning', () => {
  for (const { doc, columns } of describedTables()) {
    expect(doc).not.toBe('');
    for (const column of columns) expect(column.doc).not.toBe('');
  }
});
