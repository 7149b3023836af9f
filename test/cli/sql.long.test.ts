import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, expect, test } from 'vitest';
import { sqlDocumentSchema, sqlSchemaDocumentSchema } from '../../src/model/documents/session.js';
import { derivedTables } from '../../src/model/derived-tables.js';
import { tableNames } from '../../src/model/tables.js';
import { homeFolders } from '../../src/session/home.js';
import { testFolder } from '../../src/session/test-folder.js';
import { saveSession } from '../../src/session/test-session.js';
import { cli } from './run-cli.js';

const scratch = testFolder();
const home = homeFolders({ INFERSCOPE_HOME: join(scratch, 'home') });
const secret = join(scratch, 'secret.csv');
let first: string;
let second: string;

beforeAll(async () => {
  first = (await saveSession(home, { createdAt: new Date('2026-11-01'), name: 'base' })).id;
  second = (await saveSession(home, { createdAt: new Date('2026-11-02') })).id;
  writeFileSync(secret, 'word\nxyzzy\n');
});

function sql(...args: string[]) {
  return spawnSync(process.execPath, [cli, 'sql', ...args], {
    encoding: 'utf8',
    cwd: scratch,
    env: { ...process.env, INFERSCOPE_HOME: home.root, INFERSCOPE_TEST_SECRET: 'xyzzy', NO_COLOR: '1' },
  });
}

test('queries one session by default, several if named; every row has its session', () => {
  const query = 'SELECT session_id, count(*) AS n, sum(dur_ns) AS total FROM ops GROUP BY ALL ORDER BY 1';
  const single = sqlDocumentSchema.parse(JSON.parse(sql('--json', query).stdout));
  expect(single.data).toMatchObject({ sessions: [second], rows: [[second, 3, 27]], truncated: false });
  expect(single.data.columns).toEqual([
    { name: 'session_id', type: 'VARCHAR' },
    { name: 'n', type: 'BIGINT' },
    { name: 'total', type: 'HUGEINT' },
  ]);
  const both = sqlDocumentSchema.parse(
    JSON.parse(sql('-s', 'base', '--session', '@last', '--format', 'json', query).stdout),
  );
  expect(both.data.rows).toEqual([
    [first, 3, 27],
    [second, 3, 27],
  ]);
});

test('csv follows RFC 4180, distinguishes NULL from empty text, and keeps every digit of large integers', () => {
  const query = `SELECT name, NULL AS a, '' AS b, 'x,"y"' AS c, 9007199254740993 AS d FROM ops ORDER BY op_id LIMIT 1`;
  expect(sql('--format', 'csv', query).stdout).toBe('name,a,b,c,d\nop 0,,"","x,""y""",9007199254740993\n');
});

test('a table fits 80 columns; one that cannot is printed with one value per line', () => {
  const narrow = sql("SELECT name, dur_ns, repeat('long ', 40) AS words FROM ops ORDER BY op_id")
    .stdout.trimEnd()
    .split('\n');
  expect(narrow).toHaveLength(5);
  expect(narrow[1]).toMatch(/^op 0 +10 {2}long .*…$/);
  for (const line of narrow) expect(line.length).toBeLessThanOrEqual(80);
  const wide = sql('SELECT * FROM ops LIMIT 1').stdout;
  expect(wide).toMatch(/^row 1\n {2}session_id /);
  for (const line of wide.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('--schema lists every table, derived ones after recorded ones', () => {
  const { data } = sqlSchemaDocumentSchema.parse(JSON.parse(sql('--schema', '--json').stdout));
  const namesOf = (isDerived: boolean) =>
    data.tables.filter(({ derived }) => derived === isDerived).map(({ name }) => name);
  expect([namesOf(false), namesOf(true)]).toEqual([tableNames, Object.keys(derivedTables)]);
  for (const line of sql('--schema').stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('derived tables are available only for a single session, because ids of windows repeat in others', () => {
  const { status, stderr } = sql('-s', 'base', '-s', '@last', 'SELECT * FROM windows');
  expect([status, stderr.split('\n')[0]]).toEqual([
    2,
    'error: windows can only be computed from one session (E_USAGE)',
  ]);
});

test('--schema TABLE prints one table; an unknown one names the nearest', () => {
  const { data } = sqlSchemaDocumentSchema.parse(JSON.parse(sql('--schema', 'ops', '--json').stdout));
  expect(data.tables.map(({ name }) => name)).toEqual(['ops']);
  const unknown = sql('--schema', 'kernel');
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('--schema kernels')]);
  expect(sql('base', '--schema').stdout).toBe(sql('--schema').stdout);
});

test('the session may come first; a query without rows names the session on stderr', () => {
  const sessionAndQuery = ['base', 'SELECT session_id, count(*) FROM ops GROUP BY ALL'];
  const { data } = sqlDocumentSchema.parse(JSON.parse(sql('--json', ...sessionAndQuery).stdout));
  expect(data).toMatchObject({ sessions: [first], rows: [[first, 3]] });
  const none = sql('base', 'SELECT * FROM ops WHERE dur_ns < 0');
  expect([none.status, none.stderr]).toEqual([0, expect.stringContaining(first)]);
});

const attacks: [string, string][] = [
  [`COPY ops TO '${scratch}/out.csv'`, 'E_SQL_STATEMENT'],
  [`COPY (SELECT 1) TO '${scratch}/out.csv'`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM read_csv('${secret}')`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM read_text('/etc/passwd')`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM read_parquet('${scratch}/home/sessions/*/tables/*/*.parquet')`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM glob('/etc/*')`, 'E_SQL_STATEMENT'],
  // A table name that is a path: the grammar allows it, but DuckDB's lock does not.
  [`SELECT * FROM '${secret}'`, 'E_SQL_QUERY'],
  [`SELECT * FROM "${secret}"`, 'E_SQL_QUERY'],
  [`SELECT * FROM '${scratch}/home/sessions/x.parquet'`, 'E_SQL_QUERY'],
  [`SELECT * FROM 'https://localhost/x.parquet'`, 'E_SQL_QUERY'],
  [`ATTACH '${scratch}/x.db'`, 'E_SQL_STATEMENT'],
  ['INSTALL httpfs', 'E_SQL_STATEMENT'],
  ['LOAD httpfs', 'E_SQL_STATEMENT'],
  ['PRAGMA database_list', 'E_SQL_STATEMENT'],
  ['SET enable_external_access = true', 'E_SQL_STATEMENT'],
  ['SELECT 1; SELECT 2', 'E_SQL_STATEMENT'],
  [`SELECT 1; COPY ops TO '${scratch}/out.csv'`, 'E_SQL_STATEMENT'],
  [`SELECT getenv('INFERSCOPE_TEST_SECRET')`, 'E_SQL_STATEMENT'],
  [`SELECT current_setting('temp_directory')`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM enable_logging(storage = 'file', storage_path = '${scratch}/logs')`, 'E_SQL_STATEMENT'],
  [`SELECT * FROM query('COPY ops TO ''${scratch}/out.csv''')`, 'E_SQL_STATEMENT'],
  [`CREATE TABLE t AS SELECT 1`, 'E_SQL_STATEMENT'],
  [`EXPORT DATABASE '${scratch}/out'`, 'E_SQL_STATEMENT'],
];

test.each(attacks)('a query can read only the sessions: %s', (query, code) => {
  const { status, stdout, stderr } = sql(query);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain(code);
  expect(stderr).not.toContain('xyzzy');
  expect(readdirSync(scratch).sort()).toEqual(['home', 'secret.csv']);
});

test('rows above --max-rows are cut with a note', () => {
  const { stdout, stderr, status } = sql('--max-rows', '5', '--json', 'SELECT * FROM range(100000)');
  expect(status).toBe(0);
  expect(sqlDocumentSchema.parse(JSON.parse(stdout)).data).toMatchObject({
    rows: [[0], [1], [2], [3], [4]],
    truncated: true,
  });
  expect(stderr).toContain('--max-rows');
  expect(
    sqlDocumentSchema.parse(JSON.parse(sql('--max-rows', '5', '--json', 'SELECT * FROM range(5)').stdout))
      .data.truncated,
  ).toBe(false);
});

test('stops a query that runs too long, and one that needs too much memory', () => {
  const slow = sql(
    '--timeout',
    '1s',
    'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3',
  );
  expect(slow.status).toBe(2);
  expect(slow.stderr).toContain('E_SQL_LIMIT');
  const large = sql('--memory-limit', '64MiB', "SELECT list(repeat('x', 1000) || range) FROM range(1000000)");
  expect(large.status).toBe(2);
  expect(large.stderr).toContain('E_SQL_LIMIT');
});

test('an error in the query shows DuckDB’s message and position', () => {
  const { status, stderr } = sql('SELECT clas FROM ops');
  expect(status).toBe(2);
  expect(stderr).toContain('E_SQL_QUERY');
  expect(stderr).toContain('"clas" not found');
  expect(stderr).toContain('class');
  expect(sql('').status).toBe(2);
  // A session without a query.
  for (const word of ['@last', 'llm-b1']) expect(sql(word).stderr).toContain('E_USAGE');
  expect(sql('--format', 'xml', 'SELECT 1').stderr).toContain('E_USAGE');
});

test('--help has two examples; nothing is left in the temporary folder', () => {
  const { stdout } = sql('--help');
  expect(stdout.match(/^ {2}\$ inferscope sql /gm)).toHaveLength(2);
  expect(existsSync(secret)).toBe(true);
  const result = spawnSync(process.execPath, [cli, 'sql', 'SELECT 1'], {
    env: { ...process.env, INFERSCOPE_HOME: home.root, TMPDIR: scratch },
  });
  expect(result.status).toBe(0);
  expect(readdirSync(scratch).sort()).toEqual(['home', 'secret.csv']);
});

test.runIf(process.platform === 'linux')(
  'stops a query with a large list, which the memory limit of DuckDB does not count',
  () => {
    // One value of 2 GB. Without inferscope's own memory limit the query would succeed.
    const { status, stderr } = sql('--memory-limit', '64MiB', 'SELECT len(range(250000000))');
    expect([status, stderr.match(/E_\w+/)?.[0]], stderr).toEqual([2, 'E_SQL_LIMIT']);
  },
);
