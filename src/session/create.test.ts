import { DuckDBInstance } from '@duckdb/node-api';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { manifestSchema, manifestVersion } from '../model/manifest.js';
import { tables } from '../model/tables.js';
import { createSession } from './create.js';
import { writtenManifestVersion } from './manifest-file.js';
import { openSession } from './open.js';
import { testHome, testFolder } from './test-folder.js';
import { saveSession, summary } from './test-session.js';

test('saves a complete session: manifest by its schema, checksums as sha256sum and node compute them', async () => {
  const home = testHome();
  const { id, folder } = await saveSession(home, { createdAt: new Date('2026-11-20T22:15:03Z') });
  expect(id).toBe('20261120-221503-llama-24m');
  expect(writtenManifestVersion).toBe(manifestVersion);
  const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(folder, 'session.json'), 'utf8')));
  expect(manifest.data.tables['ops']?.[0]).toMatchObject({
    path: 'tables/ops/c0.parquet',
    rows: 3,
    capture_id: 'c0',
  });
  for (const file of [...Object.values(manifest.data.tables).flat(), ...manifest.data.artifacts]) {
    const bytes = readFileSync(join(folder, file.path));
    expect(bytes.length).toBe(file.bytes);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256);
  }
  expect(execFileSync('sha256sum', ['-c', 'session.json.sha256'], { cwd: folder, encoding: 'utf8' })).toBe(
    'session.json: OK\n',
  );
  expect(readdirSync(folder).sort()).toEqual(['artifacts', 'session.json', 'session.json.sha256', 'tables']);
  expect(readdirSync(home.sessions)).toEqual([id]);
});

test('the Parquet files are standard: another DuckDB reads columns, types, nulls and order from them', async () => {
  const home = testHome();
  const writer = await createSession({ label: 'x', kind: 'import', home });
  const keys = { execution_id: 'e', host: 'h', pid: 1, rank: 0 };
  // More than one chunk, two captures alternating, extreme values of each type.
  const rows = 5000;
  for (let i = 0; i < rows; i++) {
    writer.sink.append('kernels', {
      ...keys,
      capture_id: i % 2 ? 'c1' : 'c0',
      start_ns: Number.MAX_SAFE_INTEGER - i,
      registers: i === 0 ? -(2 ** 31) + 1 : null,
      name: i === 2 ? 'a\0b “ü” \u{1F600}' : `k${i % 7}`,
    });
  }
  writer.sink.append('stages', { ...keys, capture_id: 'c0', warmup: true, start_ns: 0.6, kind: '' });
  const { folder } = await writer.finish(summary);
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJS();
  const path = (table: string, capture: string) => `'${folder}/tables/${table}/${capture}.parquet'`;

  const described = await read(`DESCRIBE SELECT * FROM ${path('kernels', 'c0')}`);
  expect(Object.fromEntries(described.map((row) => [row['column_name'], row['column_type']]))).toEqual(
    Object.fromEntries(Object.entries(tables.kernels.columns).map(([name, { type }]) => [name, type])),
  );
  const first = await read(`SELECT * FROM ${path('kernels', 'c0')} LIMIT 2`);
  expect(first[0]).toMatchObject({
    capture_id: 'c0',
    execution_id: 'e',
    start_ns: 9007199254740991n,
    registers: -2147483647,
    dur_ns: null,
    class: null,
  });
  expect(first[1]?.['name']).toBe('a\u2400b “ü” \u{1F600}');
  expect(
    await read(
      `SELECT count(*) AS n, sum(start_ns) AS total, count(registers) AS set_registers FROM ${path('kernels', 'c1')}`,
    ),
  ).toEqual([{ n: 2500n, total: 2500n * 9007199254740991n - 6250000n, set_registers: 0n }]);
  expect(await read(`SELECT start_ns, warmup, kind, parent_id FROM ${path('stages', 'c0')}`)).toEqual([
    { start_ns: 1n, warmup: true, kind: '', parent_id: null },
  ]);
  const compression = await read(
    `SELECT DISTINCT compression FROM parquet_metadata(${path('kernels', 'c0')})`,
  );
  expect(compression).toEqual([{ compression: 'ZSTD' }]);
});

test.each([
  ['a time beyond 2^53', { start_ns: 2 ** 53 }],
  ['NaN', { start_ns: Number.NaN }],
  ['an INTEGER beyond 32 bits', { registers: 2 ** 31 }],
  ['a row without its capture', { capture_id: null }],
  ['a capture id that is a path', { capture_id: '../c0' }],
])('a value the schema cannot hold is refused by name: %s', async (_, bad) => {
  const home = testHome();
  const writer = await createSession({ label: 'x', kind: 'import', home });
  expect(() => writer.sink.append('kernels', { capture_id: 'c0', ...bad })).toThrow(
    /table kernels: \w+ cannot hold/,
  );
  await writer.abandon();
  expect(readdirSync(home.sessions)).toEqual([]);
});

test('stores artifacts from bytes, from a file and from the scratch folder; equal names do not collide', async () => {
  const home = testHome();
  const elsewhere = join(testFolder(), 'run.log');
  writeFileSync(elsewhere, 'one');
  const writer = await createSession({ label: 'x', kind: 'run', home });
  writeFileSync(join(writer.scratch, 'trace.json'), 'two');
  const place = { kind: 'log', captureId: null };
  const sessions = [
    await writer.addArtifact(elsewhere, place),
    await writer.addArtifact(elsewhere, place),
    await writer.addArtifact(join(writer.scratch, 'trace.json'), { kind: 'trace', captureId: 'c0' }),
    await writer.addArtifact(Buffer.from('x'), { ...place, name: '../../../etc/passwd' }),
  ];
  expect(sessions.map(({ path }) => path)).toEqual([
    'artifacts/session/run.log',
    'artifacts/session/run-2.log',
    'artifacts/c0/trace.json',
    'artifacts/session/etc-passwd',
  ]);
  await expect(writer.addArtifact('/does/not/exist', place)).rejects.toMatchObject({ code: 'ENOENT' });
  const { folder } = await writer.finish(summary);
  expect(readFileSync(join(folder, 'artifacts/c0/trace.json'), 'utf8')).toBe('two');
  expect(existsSync(elsewhere)).toBe(true);
});

test('two writers with the same second and label both save their session', async () => {
  const home = testHome();
  const createdAt = new Date('2026-11-20T22:15:03Z');
  const sessions = await Promise.all([1, 2, 3].map(() => saveSession(home, { createdAt })));
  const stem = '20261120-221503-llama-24m';
  expect(sessions.map(({ id }) => id).sort()).toEqual([stem, `${stem}-2`, `${stem}-3`]);
  for (const { id } of sessions) expect((await openSession(id, home)).manifest.id).toBe(id);
});

test('a taken or invalid name fails before anything is written', async () => {
  const home = testHome();
  const { id } = await saveSession(home, { name: 'llm-b1' });
  for (const name of ['llm-b1', '@last', 'a b', id.slice(0, 4), '2026', id]) {
    await expect(saveSession(home, { name })).rejects.toMatchObject({ code: 'E_SESSION_NAME' });
  }
  expect(readdirSync(home.sessions)).toEqual([id]);
});
