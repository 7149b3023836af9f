import { DuckDBInstance } from '@duckdb/node-api';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { digestFile } from '../digest.js';
import { testFolder } from '../test-folder.js';
import { arrayOf, type FileColumn, isLookedUp } from './file-column.js';
import type { InMemoryColumn, InMemoryColumns } from '../../model/workbench.js';
import { inMemoryTables } from './in-memory-tables.js';
import { writeTable } from './write-table.js';

/** Reads the file with another program as reference. */
async function read(path: string, select: string): Promise<unknown[][]> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const result = await connection.run(`SELECT ${select} FROM read_parquet('${path}')`);
  return result.getRowsJS();
}

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

const next = random(7);
const texts = [
  '',
  'ampere_sgemm',
  'ünï',
  'x'.repeat(5000),
  ...Array.from({ length: 300 }, (_, i) => `n${i}`),
];
// Columns from one array: texts, some repeated and some missing, and numbers without missing rows.
const tiles = Float64Array.from({ length: 2000 }, (_, code) => (code % 3 ? code % texts.length : Number.NaN));
const registers = Float64Array.from({ length: 2000 }, (_, code) => (code % 90) - 40);
/** All kinds of numbers in tables: rising, jumping, far above 32 bits, few distinct, constant, with nulls. */
const kinds: Record<string, (row: number) => number> = {
  rising: (row) => 1e15 + row * 700 + Math.floor(next() * 600),
  falling: (row) => -row * 3,
  wide: () => Math.floor((next() - 0.5) * 2 ** 53),
  widest: (row) => (row % 2 ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER),
  bits32: () => Math.floor(next() * 2 ** 32),
  few: () => Math.floor(next() * 9) * 2 ** 40,
  same: () => -5,
  sometimes: (row) => (next() < 0.3 ? Number.NaN : row * 11),
  never: () => Number.NaN,
  late: (row) => (row < 122_880 ? Number.NaN : row),
};

test.each([1, 8, 31, 33, 128, 129, 5000, 122_880, 123_010])('DuckDB reads %i written rows', async (rows) => {
  await checkRoundTrip(rows, async (path, columns, values) => {
    const { writer, written } = writeTable(path, columns);
    for (let from = 0; from < rows; from += 40_000) {
      const part = Object.fromEntries(
        Object.entries(values).map(([name, all]) => [name, all.subarray(from, from + 40_000)]),
      );
      await writer.append(part, Math.min(40_000, rows - from));
    }
    await writer.close();
    return written;
  });
});

test.each([0, 5, 123_010])('DuckDB reads the %i rows of an in-memory table', async (rows) => {
  await checkRoundTrip(rows, async (path, columns, values) => {
    const tables = inMemoryTables();
    const file = tables.open(path, rows);
    // Two parts; the second is added while the first is being encoded.
    const varying = columns.filter(({ constant }) => constant === undefined);
    const part = (partColumns: FileColumn[]) =>
      file.add(partColumns, { name: '', input: values, columns: (input) => sourcesOf(partColumns, input) });
    part(varying.slice(0, 7));
    const helped = tables.help();
    part(varying.slice(7));
    await helped;
    file.close(columns);
    await tables.help();
    await tables.close();
    return file.written;
  });
});

test('reports write errors and errors while a table is encoded', async () => {
  const columns: FileColumn[] = [{ name: 'start_ns', type: 'BIGINT', texts: [] }];
  const tables = inMemoryTables();
  const lost = tables.open(join(testFolder(), 'no-such-folder', 'a.parquet'), 3);
  lost.close(columns);
  await expect(lost.written).rejects.toMatchObject({ code: 'ENOENT' });
  const broken = tables.open(join(testFolder(), 'a.parquet'), 3);
  const numbers = () => {
    throw new Error('the rows are gone');
  };
  broken.add(columns, { name: '', input: {}, columns: () => ({ start_ns: { source: { numbers } } }) });
  const rejected = expect(broken.written).rejects.toThrow('the rows are gone');
  await tables.help();
  await rejected;
  await tables.close();
});

/** The arrays as an in-memory table gives them. */
function sourcesOf(columns: readonly FileColumn[], values: Record<string, Float64Array>): InMemoryColumns {
  return Object.fromEntries(
    columns
      .filter(({ constant }) => constant === undefined)
      .map((column) => {
        const all = values[arrayOf(column)]!;
        const codes = Int32Array.from(all, (value) => (Number.isNaN(value) ? -1 : value));
        const source: InMemoryColumn = isLookedUp(column)
          ? { source: { codes: (from, count) => codes.subarray(from, from + count) } }
          : { source: { numbers: (from, count) => all.subarray(from, from + count) } };
        return [arrayOf(column), source];
      }),
  );
}

type Write = (
  path: string,
  columns: readonly FileColumn[],
  values: Record<string, Float64Array>,
) => Promise<object>;

async function checkRoundTrip(rows: number, write: Write): Promise<void> {
  const columns: FileColumn[] = Object.keys(kinds).map((name) => ({ name, type: 'BIGINT', texts: [] }));
  columns.push(
    { name: 'small', type: 'INTEGER', texts: [] },
    { name: 'text', type: 'VARCHAR', texts },
    { name: 'flag', type: 'BOOLEAN', texts: [] },
    { name: 'real', type: 'DOUBLE', texts: [] },
    { name: 'again', type: 'BIGINT', texts: [], from: 'rising' },
    { name: 'tile', type: 'VARCHAR', texts, from: 'code', values: tiles },
    { name: 'registers', type: 'INTEGER', texts: [], from: 'code', values: registers },
    { name: 'graph_id', type: 'BIGINT', texts: [], from: 'code', values: registers },
    { name: 'unknown', type: 'BIGINT', texts: [], from: 'code', values: new Float64Array() },
    { name: 'host', type: 'VARCHAR', texts: ['local'], constant: 0 },
    { name: 'rank', type: 'INTEGER', texts: [], constant: -3 },
    { name: 'device', type: 'INTEGER', texts: [], constant: null },
  );
  const make: Record<string, (row: number) => number> = {
    ...kinds,
    small: () => Math.floor((next() - 0.5) * 2 ** 32),
    text: (row) => (row % 7 === 3 ? Number.NaN : Math.floor(next() * next() * texts.length)),
    flag: (row) => (row % 5 === 0 ? Number.NaN : Number(next() < 0.5)),
    real: () => next() * 1e-9,
    code: (row) => (row % 11 === 5 ? Number.NaN : Math.floor(next() * next() * tiles.length)),
  };
  const values = Object.fromEntries(
    Object.entries(make).map(([name, value]) => [
      name,
      Float64Array.from({ length: rows }, (_, row) => value(row)),
    ]),
  );
  const path = join(testFolder(), 'a.parquet');
  expect(await write(path, columns, values)).toMatchObject({ rows, digest: await digestFile(path) });

  const rowsRead = await read(path, columns.map(({ name }) => `"${name}"`).join(', '));
  expect(rowsRead.length).toBe(rows);
  const differences: unknown[] = [];
  rowsRead.forEach((row, rowIndex) => {
    columns.forEach(({ name, type, constant, from = name, values: source }, columnIndex) => {
      const written = constant === undefined ? values[from]![rowIndex]! : (constant ?? Number.NaN);
      const number = source ? (source[written] ?? Number.NaN) : written;
      let expected: unknown = type === 'BIGINT' && !Number.isNaN(number) ? BigInt(number) : number;
      if (Number.isNaN(number)) expected = null;
      else if (type === 'VARCHAR') expected = name === 'host' ? 'local' : texts[number];
      else if (type === 'BOOLEAN') expected = number === 1;
      if (row[columnIndex] !== expected) differences.push([rowIndex, name, row[columnIndex], expected]);
    });
  });
  expect(differences.slice(0, 5)).toEqual([]);
}

test('writes types, an empty table, and bounds by which rows are found', async () => {
  const path = join(testFolder(), 'b.parquet');
  const columns: FileColumn[] = [
    { name: 'start_ns', type: 'BIGINT', texts: [] },
    { name: 'name', type: 'VARCHAR', texts: ['a'] },
  ];
  await writeTable(path, columns).writer.close();
  expect(await read(path, 'count(*)')).toEqual([[0n]]);

  const large = join(testFolder(), 'c.parquet');
  const { writer } = writeTable(large, columns);
  const rows = 300_000;
  await writer.append(
    { start_ns: Float64Array.from({ length: rows }, (_, i) => i * 10), name: new Float64Array(rows) },
    rows,
  );
  await writer.close();
  expect(
    await read(
      large,
      'count(*) FILTER (start_ns = 2500000), typeof(any_value(start_ns)), typeof(any_value(name))',
    ),
  ).toEqual([[1n, 'BIGINT', 'VARCHAR']]);
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const bounds = await connection.run(
    `SELECT stats_min_value, stats_max_value, stats_null_count FROM parquet_metadata('${large}')
     WHERE path_in_schema = 'start_ns' ORDER BY row_group_id`,
  );
  expect(await bounds.getRowsJS()).toEqual([
    ['0', '1228790', 0n],
    ['1228800', '2457590', 0n],
    ['2457600', '2999990', 0n],
  ]);
  const same = join(testFolder(), 'd.parquet');
  const writtenTable = writeTable(same, [
    { name: 'host', type: 'VARCHAR', texts: ['node-7'], constant: 0 },
    columns[0]!,
  ]);
  await writtenTable.writer.append({ start_ns: new Float64Array(3) }, 3);
  await writtenTable.writer.close();
  const textRows = await connection.run(
    `SELECT stats_min_value, stats_max_value FROM parquet_metadata('${same}') WHERE path_in_schema = 'host'`,
  );
  expect(await textRows.getRowsJS()).toEqual([['node-7', 'node-7']]);
});
