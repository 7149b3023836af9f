import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase, quote } from './database.js';
import { testFolder } from './test-folder.js';
import { createViews } from './views.js';

const folder = testFolder();

/** Rows of two captures: some columns are constant over both files, some within each file, some in neither, one is null. */
const rowsOf = (capture: string, from: number) =>
  `SELECT 'e' AS execution_id, '${capture}' AS capture_id, 'localhost' AS host, 7::BIGINT AS pid, 0::INTEGER AS rank,
     CASE WHEN i % 2 = 0 THEN 1 END::BIGINT AS tid, NULL::INTEGER AS device, (${from} + i)::BIGINT AS start_ns, 'it''s' AS name
   FROM range(5) t(i)`;

test('columns with one value are taken from the statistics; the rows equal those of the files', async () => {
  const { connection, close } = await openDatabase();
  try {
    const files = ['a', 'b'].map((capture) => join(folder, `${capture}.parquet`));
    await connection.run(`COPY (${rowsOf('a', 0)}) TO ${quote(files[0]!)} (FORMAT parquet)`);
    await connection.run(`COPY (${rowsOf('b', 10)}) TO ${quote(files[1]!)} (FORMAT parquet)`);
    const written = await connection.runAndReadAll(
      `${rowsOf('a', 0)} UNION ALL ${rowsOf('b', 10)} ORDER BY start_ns`,
    );
    const source = { id: 's', files: { api_calls: files } };
    await createViews(connection, [source], { withSessionId: false, rows: Number.POSITIVE_INFINITY });
    const columns = 'execution_id, capture_id, host, pid, rank, tid, device, start_ns, name';
    const read = await connection.runAndReadAll(`SELECT ${columns} FROM api_calls ORDER BY start_ns`);
    expect(read.getRowsJson()).toEqual(written.getRowsJson());
    expect(read.columnTypes().map(String)).toEqual(written.columnTypes().map(String));
    const [[filter]] = (
      await connection.runAndReadAll("SELECT count(*) FROM api_calls WHERE capture_id = 'b' AND rank = 0")
    ).getRowsJson() as [[string]];
    expect(Number(filter)).toBe(5);
    // A constant is part of the plan: a filter on it is evaluated before any row is read.
    const plan = await connection.runAndReadAll(
      'EXPLAIN SELECT sum(start_ns) FROM api_calls WHERE pid = 7 AND device IS NULL',
    );
    expect(JSON.stringify(plan.getRowsJson())).not.toMatch(/pid|device/);
  } finally {
    await close();
  }
});

test.each([
  ['named after their capture', ['c', 'd'], ['c', 'd'], '1/2', ''],
  ['named after each other', ['d', 'c'], ['c', 'd'], '2/2', ''],
  ['with another schema', ['c', 'd'], ['c', 'd'], '1/2', 'NULL::VARCHAR AS api, '],
] as const)(
  'a filter on the capture gives its rows from files %s',
  async (_, names, captures, read, more = '') => {
    const home = testFolder();
    const { connection, close } = await openDatabase();
    try {
      const files = names.map((name) => join(home, `${name}.parquet`));
      for (const [index, file] of files.entries()) {
        const columns = index === 1 ? more : '';
        const rows = rowsOf(captures[index]!, 10 * index).replace('SELECT ', `SELECT ${columns}`);
        await connection.run(`COPY (${rows}) TO ${quote(file)} (FORMAT parquet)`);
      }
      await createViews(connection, [{ id: 's', files: { api_calls: files } }], { withSessionId: false });
      const where = "FROM api_calls WHERE capture_id = 'd'";
      const result = await connection.runAndReadAll(
        `SELECT capture_id, count(*), min(start_ns), any_value(api) ${where} GROUP BY ALL`,
      );
      expect(result.getRowsJson()).toEqual([['d', '5', '10', null]]);
      const plan = await connection.runAndReadAll(`EXPLAIN SELECT max(start_ns) ${where}`);
      const pruned = JSON.stringify(plan.getRowsJson()).includes('Scanning Files: 1/2');
      expect(pruned).toBe(read === '1/2');
    } finally {
      await close();
    }
  },
);
