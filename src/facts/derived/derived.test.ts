import { expect, test } from 'vitest';
import { type DerivedTable, derivedTables } from '../../model/derived-tables.js';
import { testHome } from '../../session/test-folder.js';
import { profileRows } from '../test-rows.js';
import { sessionOf } from '../test-session.js';
import { fixture, imported } from '../trace/test-import.js';
import { definitionsOf, derivedOf } from './queries.js';
import { userDatabase } from './test-queries.js';

const home = testHome();
const names = Object.keys(derivedTables) as DerivedTable[];

test('every derived table has its documented columns', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  const database = await userDatabase(session);
  const columnsByTable: Record<string, Record<string, string>> = {};
  for (const name of names) {
    const columns = await database.query<{ column_name: string; column_type: string }>(`DESCRIBE ${name}`);
    columnsByTable[name] = Object.fromEntries(
      columns.map((column) => [column.column_name, column.column_type]),
    );
  }
  expect(columnsByTable).toEqual(
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

test('makes a table after the tables it needs, and no others', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  const made = (await definitionsOf(session, ['windows', 'stages_in_phases'])).map(({ name }) => name);
  expect(made).toEqual([
    'stage_places',
    'stages_in_phases',
    'phase_stages',
    'instances',
    'rank_kernels',
    'windows',
  ]);
});

test('a warm-up repeat of the embedded engine is one window, and its last step ends with the repeat', async () => {
  const database = await userDatabase(await sessionOf(home, profileRows()));
  const rows = await database.query<{ kind: string; ms: number }>(
    'SELECT kind, (end_ns - start_ns) / 1e6 AS ms FROM windows ORDER BY start_ns, stage_id',
  );
  // Prefill 30, sampling 1, then 0.25 before each step of 12 and 14, 0.5 of sampling after each, 0.25 at the end.
  expect(rows.map(({ kind, ms }) => [kind, ms])).toEqual([
    ['warmup', 58.75],
    ['prefill', 30],
    ['sampling', 1],
    ['decode', 12.75],
    ['sampling', 0.5],
    ['decode', 14.75],
    ['sampling', 0.5],
  ]);
  await database.close();
});

test('rejects derived tables of several sessions, because window ids repeat', async () => {
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {});
  await expect(derivedOf([session, session]).make(['windows'])).rejects.toMatchObject({ code: 'E_USAGE' });
});
