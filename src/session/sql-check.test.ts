import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from './database.js';
import { checkStatement, queryFailed } from './sql-check.js';

let database: Database;
beforeAll(async () => {
  database = await openDatabase();
});
afterAll(() => database.close());

test.each([
  'SELECT 1',
  'select 1 -- with a comment; and more',
  'SELECT 1;',
  'WITH a AS (SELECT 1 AS x) SELECT * FROM a',
  'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t',
  'FROM ops',
  'VALUES (1), (2)',
  'DESCRIBE ops',
  'SUMMARIZE ops',
  'SELECT * FROM range(5) AS r, unnest([1, 2]) AS u',
  "PIVOT ops ON class IN ('gemm', 'norm') USING sum(dur_ns)",
  'SELECT quantile_cont(dur_ns, 0.99) OVER (PARTITION BY class) FROM ops',
  "SELECT 'COPY ops TO x; DROP TABLE ops'",
])('lets through: %s', async (sql) => {
  await expect(checkStatement(database.connection, sql)).resolves.toBeInstanceOf(Set);
});

test.each([
  'SELECT 1; SELECT 2',
  '',
  ' -- nothing',
  "COPY ops TO '/tmp/x.csv'",
  "COPY (SELECT 1) TO '/tmp/x.csv'",
  "ATTACH '/tmp/x.db'",
  'INSTALL httpfs',
  'LOAD httpfs',
  'PRAGMA version',
  'PRAGMA database_list',
  'CALL enable_logging()',
  'SET threads = 1',
  'RESET threads',
  'SET VARIABLE x = 1',
  'CREATE TABLE t (a INT)',
  'CREATE MACRO m() AS 1',
  'INSERT INTO ops VALUES (1)',
  'DELETE FROM ops',
  'UPDATE ops SET name = 1',
  'DROP VIEW ops',
  'EXPLAIN ANALYZE SELECT 1',
  'PREPARE p AS SELECT 1',
  'BEGIN',
  'CHECKPOINT',
  "EXPORT DATABASE '/tmp/x'",
  'USE memory',
  "SELECT * FROM read_csv('/etc/passwd')",
  "SELECT * FROM read_parquet('/tmp/x.parquet')",
  "SELECT * FROM READ_TEXT('/etc/passwd')",
  "SELECT * FROM main.read_blob('/etc/passwd')",
  "SELECT * FROM glob('/*')",
  "SELECT (SELECT content FROM read_text('/etc/passwd'))",
  "WITH a AS MATERIALIZED (SELECT * FROM sniff_csv('/etc/passwd')) SELECT 1",
  "SELECT 1 WHERE EXISTS (FROM parquet_metadata('/tmp/x.parquet'))",
  'SELECT * FROM enable_logging()',
  'SELECT * FROM enable_profiling()',
  'SELECT * FROM force_checkpoint()',
  'SELECT * FROM duckdb_settings()',
  "SELECT * FROM query('SELECT 1')",
  "SELECT * FROM query_table('ops')",
  "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
  "SELECT getenv('HOME')",
  "SELECT write_log('x')",
  "SELECT current_setting('temp_directory')",
  "SELECT list_transform([1], x -> nextval('s'))",
])('refuses: %s', async (sql) => {
  await expect(checkStatement(database.connection, sql)).rejects.toMatchObject({
    code: 'E_SQL_STATEMENT',
    exitCode: 2,
  });
});

test("text that does not parse is an error of the query, with DuckDB's message", async () => {
  await expect(checkStatement(database.connection, 'SELEC 1')).rejects.toMatchObject({
    code: 'E_SQL_QUERY',
    parts: { what: expect.stringContaining('syntax error') },
  });
});

test("suggests no table of DuckDB's own", () => {
  const missing = 'Catalog Error: Table with name steps does not exist!\nDid you mean';
  expect(queryFailed(`${missing} "duckdb_types"?\n\nLINE 1: FROM steps`).parts.why).toBe(
    'LINE 1: FROM steps',
  );
  expect(queryFailed(`${missing} "stages"?\n\nLINE 1: FROM steps`).parts.why).toContain('stages');
});

test('returns the names of all tables that a statement reads, at any position', async () => {
  const sql = `WITH a AS (SELECT * FROM windows) SELECT *, (SELECT max(dur_ns) FROM "Rank_Kernels") FROM a JOIN ops USING (stage_id)
    WHERE EXISTS (SELECT 1 FROM stages_in_phases)`;
  expect(await checkStatement(database.connection, sql)).toEqual(
    new Set(['windows', 'rank_kernels', 'a', 'ops', 'stages_in_phases']),
  );
});
