import {
  appendFileSync,
  cpSync,
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { tableNames, tables } from '../model/tables.js';
import { digestOf } from './digest.js';
import { listSessions } from './list.js';
import { openSession } from './open.js';
import { selectSession } from './select.js';
import { testHome } from './test-folder.js';
import { saveSession } from './test-session.js';
import { verifySession } from './verify.js';

const home = testHome();
let id = '';
let folder = '';

beforeEach(async () => {
  ({ id, folder } = await saveSession(home));
});

/** Flips one bit in the middle of a file, keeping its size. */
function flip(path: string): void {
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** Rewrites the manifest as another version of inferscope could have, with its checksum. */
function rewriteManifest(
  change: (document: { schema: string; data: Record<string, unknown> }) => void,
): void {
  const document = JSON.parse(readFileSync(join(folder, 'session.json'), 'utf8'));
  change(document);
  const text = JSON.stringify(document);
  writeFileSync(join(folder, 'session.json'), text);
  writeFileSync(join(folder, 'session.json.sha256'), `${digestOf(text).sha256}  session.json\n`);
}

test('every table of the schema is a typed view; missing ones are empty', async () => {
  const session = await openSession('@last', home);
  const database = await session.connect();
  for (const table of tableNames) {
    const description = await database.query<{ column_name: string; column_type: string }>(
      `DESCRIBE "${table}"`,
    );
    expect(description.map(({ column_name, column_type }) => [column_name, column_type])).toEqual(
      Object.entries(tables[table].columns).map(([name, { type }]) => [name, type]),
    );
  }
  expect(await database.query('SELECT count(*) AS n, sum(dur_ns) AS total FROM ops')).toEqual([
    { n: 3, total: 27 },
  ]);
  expect(await database.query('SELECT * FROM kernels')).toEqual([]);
  expect(await database.query('SELECT name FROM ops WHERE dur_ns >= $1 AND name <> $2', [9, 'op 0'])).toEqual(
    [{ name: 'op 1' }],
  );
  expect(await database.query('SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d', [null, 1.5, true, 3])).toEqual([
    { a: null, b: 1.5, c: true, d: 3 },
  ]);
  await expect(database.query('SELECT 9007199254740993 AS n')).rejects.toThrow(/beyond 2\^53/);
  await database.close();
});

test("a session's database reads only the session's files, and its settings cannot be changed", async () => {
  const database = await (await openSession(id, home)).connect();
  const secret = join(home.root, 'secret.csv');
  writeFileSync(secret, 'a\n1\n');
  await expect(database.query(`SELECT * FROM read_csv('${secret}')`)).rejects.toThrow(/Permission Error/);
  await expect(database.query(`COPY ops TO '${secret}'`)).rejects.toThrow(/Permission Error/);
  await expect(database.query(`SET enable_external_access = true`)).rejects.toThrow();
  await expect(database.query(`SET threads = 1`)).rejects.toThrow(/locked/);
  await database.close();
});

test('columns missing in an older session are null, columns of a newer minor version are ignored', async () => {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const path = join(folder, 'tables/stages/c0.parquet');
  await connection.run(
    `COPY (SELECT 'c0' AS capture_id, 5::INTEGER AS start_ns, 'x' AS from_the_future) TO '${path}' (FORMAT parquet)`,
  );
  rewriteManifest(({ data }) => {
    const bytes = readFileSync(path);
    (data['tables'] as Record<string, object[]>)['stages'] = [
      { path: 'tables/stages/c0.parquet', ...digestOf(bytes), capture_id: 'c0', rows: 1 },
    ];
    data['a_later_field'] = 1;
  });
  const database = await (await openSession(id, home)).connect();
  expect(await database.query('SELECT * FROM stages')).toEqual([
    {
      ...Object.fromEntries(Object.keys(tables.stages.columns).map((name) => [name, null])),
      capture_id: 'c0',
      start_ns: 5,
    },
  ]);
  expect(await database.query('SELECT typeof(start_ns) AS t FROM stages')).toEqual([{ t: 'BIGINT' }]);
  await database.close();
});

test.each([
  ['session.json', 'damaged'],
  ['session.json.sha256', 'damaged'],
  ['tables/ops/c0.parquet', 'damaged'],
])(
  'one bit changed in %s: it does not open, verify names it, the list still shows every session',
  async (path, state) => {
    flip(join(folder, path));
    await expect(openSession(id, home)).rejects.toMatchObject({ code: 'E_SESSION_CORRUPT', exitCode: 5 });
    const verification = await verifySession({ id, folder });
    const named = path.startsWith('session.json') ? 'session.json' : path;
    expect(verification).toMatchObject({ ok: false });
    expect(verification.files.find((file) => file.path === named)?.state).toBe(state);
    const listed = listSessions(home).find((session) => session.id === id);
    // The list hashes only manifests.
    expect(listed?.broken === null).toBe(!path.startsWith('session.json'));
  },
);

test('verify reports an artifact with one flipped bit', async () => {
  flip(join(folder, 'artifacts/c0/record.jsonl'));
  const { ok, files } = await verifySession({ id, folder });
  expect(ok).toBe(false);
  expect(files.filter(({ state }) => state !== 'ok').map(({ path, state }) => [path, state])).toEqual([
    ['artifacts/c0/record.jsonl', 'damaged'],
  ]);
});

test('distinguishes missing, truncated and unknown files', async () => {
  rmSync(join(folder, 'tables/stages/c0.parquet'));
  truncateSync(join(folder, 'tables/ops/c0.parquet'), 100);
  appendFileSync(join(folder, 'tables/ops/stray.parquet'), 'x');
  await expect(openSession(id, home)).rejects.toMatchObject({ code: 'E_SESSION_CORRUPT' });
  const { files } = await verifySession({ id, folder });
  expect(files.filter(({ state }) => state !== 'ok').map(({ path, state }) => [path, state])).toEqual([
    ['tables/ops/c0.parquet', 'damaged'],
    ['tables/stages/c0.parquet', 'missing'],
    ['tables/ops/stray.parquet', 'unknown'],
  ]);
  expect(listSessions(home).find((session) => session.id === id)?.broken?.code).toBe('E_SESSION_CORRUPT');
});

test('every reader rejects a session of a newer major version with its own code, and changes nothing', async () => {
  rewriteManifest((document) => {
    document.schema = 'inferscope/session/2.0';
    document.data = { anything: true };
  });
  await expect(openSession(id, home)).rejects.toMatchObject({
    code: 'E_SESSION_NEWER',
    exitCode: 5,
    parts: { why: expect.stringContaining('2'), fix: expect.stringContaining('Update') },
  });
  await expect(verifySession({ id, folder })).rejects.toMatchObject({ code: 'E_SESSION_NEWER' });
  expect(listSessions(home).find((session) => session.id === id)?.broken?.code).toBe('E_SESSION_NEWER');
});

test('opens a newer minor version; rejects a manifest of the wrong form', async () => {
  rewriteManifest((document) => {
    document.schema = 'inferscope/session/1.7';
  });
  expect((await openSession(id, home)).id).toBe(id);
  rewriteManifest(({ data }) => {
    data['captures'] = 'none';
  });
  await expect(openSession(id, home)).rejects.toMatchObject({
    code: 'E_SESSION_CORRUPT',
    parts: { why: expect.stringContaining('captures') },
  });
});

test('a damaged user.json does not hide the session and is saved when it is replaced', async () => {
  writeFileSync(join(folder, 'user.json'), '{"schema": "inferscope/user/1.0", "data": {"na');
  const session = await openSession(id, home);
  expect(session).toMatchObject({ user: { name: null }, userIssue: { code: 'user_file_damaged' } });
  const { noteSession } = await import('./edit.js');
  await noteSession({ id, folder }, 'new');
  expect(readdirSync(folder).some((name) => name.startsWith('user.json.damaged-'))).toBe(true);
  expect((await openSession(id, home)).user.notes).toHaveLength(1);
  expect((await verifySession({ id, folder })).ok).toBe(true);
});

test('recognizes a folder that was copied under another id', async () => {
  cpSync(folder, join(home.sessions, 'copy'), { recursive: true });
  await expect(openSession('copy', home)).rejects.toMatchObject({ code: 'E_SESSION_CORRUPT' });
  rmSync(join(home.sessions, 'copy'), { recursive: true });
  expect(existsSync(selectSession(id, home).folder)).toBe(true);
  renameSync(folder, join(home.sessions, '.hidden'));
  expect(() => selectSession(id, home)).toThrow();
});
