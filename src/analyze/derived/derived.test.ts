import { expect, test } from 'vitest';
import { type DerivedTable, derivedTables } from '../../model/derived-tables.js';
import { testHome } from '../../session/test-folder.js';
import { fixture, imported } from '../trace/test-import.js';
import { definitionsOf, derivedOf } from './queries.js';
import { userDatabase } from './test-queries.js';

const home = testHome();
const names = Object.keys(derivedTables) as DerivedTable[];

test('every derived table has the columns that it is documented with', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  const database = await userDatabase(session);
  const found: Record<string, Record<string, string>> = {};
  for (const name of names) {
    const columns = await database.query<{ column_name: string; column_type: string }>(`DESCRIBE ${name}`);
    found[name] = Object.fromEntries(columns.map((one) => [one.column_name, one.column_type]));
  }
  expect(found).toEqual(
    Object.fromEntries(
      names.map((name) => [
        name,
        Object.fromEntries(
          Object.entries(derivedTables[name].columns).map(([column, { type }]) => [column, type]),
        ),
      ]),
    ),
  );
  await database.close();
});

test('a table is made after all that it needs, and nothing else is made', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  const made = (await definitionsOf(session, ['windows', 'phase_of'])).map(({ name }) => name);
  expect(made).toEqual(['place_of', 'phase_of', 'focus_stages', 'instances', 'windows']);
});

test('tables of several sessions are refused: ids of their windows are the same', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  await expect(derivedOf([session, session]).make(['windows'])).rejects.toMatchObject({ code: 'E_USAGE' });
});
