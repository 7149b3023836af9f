import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { recordLineSchema } from '../model/record.js';
import { describedTables } from './table-schema.js';

const file = new URL('../../docs/reference/recording-protocol.md', import.meta.url);

test('the examples of the recording protocol are valid lines, one of each type', () => {
  const examples = [...readFileSync(file, 'utf8').matchAll(/```json\n(\{"v":1.*)\n```/g)].map(([, line]) =>
    recordLineSchema.parse(JSON.parse(line ?? '')),
  );
  expect(examples.map(({ type }) => type).sort()).toEqual(
    recordLineSchema.options.map((option) => option.shape.type.value).sort(),
  );
});

test('every table and column has a description', () => {
  for (const { doc, columns } of describedTables()) {
    expect(doc).not.toBe('');
    for (const column of columns) expect(column.doc).not.toBe('');
  }
});
