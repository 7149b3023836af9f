import Database from 'libsql';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { nsysParquetdirImporter, nsysRepImporter, nsysSqliteImporter } from './importers.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const capturePath = `${fixtures}/tiny-nsys.sqlite`;
const folder = mkdtempSync(join(tmpdir(), 'inferscope-nsys-damage-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A copy of the capture, changed. */
function changedCopy(name: string, change: (path: string) => void): string {
  const path = join(folder, name);
  copyFileSync(capturePath, path);
  change(path);
  return path;
}

/** The copy after SQLite edits. */
function editedCopy(name: string, sql: string): string {
  return changedCopy(name, (path) => {
    const database = new Database(path);
    database.exec(sql);
    database.close();
  });
}

function patchedCopy(name: string, patch: (bytes: Buffer) => void): string {
  return changedCopy(name, (path) => {
    const bytes = readFileSync(path);
    patch(bytes);
    writeFileSync(path, bytes);
  });
}

async function load(path: string) {
  const session = await createSession({
    kind: 'import',
    label: 'damage',
    home: homeFolders({ INFERSCOPE_HOME: folder }),
  });
  try {
    const importer = path.includes('.parquetdir') ? nsysParquetdirImporter : nsysSqliteImporter;
    const context = {
      execution_id: 'e',
      capture_id: 'c',
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: null },
    };
    return await importer.load(path, session, context);
  } finally {
    await session.abandon();
  }
}

const failure = (code: string, why: RegExp) =>
  expect.objectContaining({
    code,
    parts: {
      what: expect.stringContaining('cannot read'),
      why: expect.stringMatching(why),
      fix: expect.any(String),
    },
  });

/** Root page of a table, for breaking exactly that one. */
function rootOf(table: string): number {
  const database = new Database(capturePath, { readonly: true });
  const row = database.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(table) as {
    rootpage: number;
  };
  database.close();
  return row.rootpage;
}

const pageSize = 4096;
const kernelRootOffset = (rootOf('CUPTI_ACTIVITY_KIND_KERNEL') - 1) * pageSize;
const cases: [string, string, () => string, RegExp][] = [
  [
    'an empty file',
    'E_TRACE_FILE',
    () => changedCopy('empty.sqlite', (path) => truncateSync(path, 0)),
    /empty/,
  ],
  [
    'a file cut off',
    'E_TRACE_FILE',
    () => changedCopy('cut.sqlite', (path) => truncateSync(path, 200_000)),
    /cut off: 200\u00a0000 bytes/,
  ],
  [
    'a file of 50 bytes',
    'E_TRACE_FILE',
    () => changedCopy('short.sqlite', (path) => truncateSync(path, 50)),
    /no SQLite header/,
  ],
  [
    'text',
    'E_TRACE_FILE',
    () => changedCopy('text.sqlite', (path) => writeFileSync(path, 'x'.repeat(5000))),
    /no SQLite header/,
  ],
  ['a missing file', 'E_TRACE_FILE', () => join(folder, 'nosuch.sqlite'), /no such file/],
  [
    'a folder',
    'E_TRACE_FILE',
    () => {
      mkdirSync(join(folder, 'folder.sqlite'));
      return join(folder, 'folder.sqlite');
    },
    /no SQLite header|EISDIR/,
  ],
  [
    "another program's database",
    'E_TRACE_FILE',
    () => {
      const path = join(folder, 'other.sqlite');
      const database = new Database(path);
      database.exec('CREATE TABLE places (id INTEGER)');
      database.close();
      return path;
    },
    /not an nsys export/,
  ],
  [
    'a newer schema',
    'E_TRACE_NEWER',
    () =>
      editedCopy(
        'newer.sqlite',
        "UPDATE META_DATA_EXPORT SET value = '4.1.0' WHERE name = 'EXPORT_SCHEMA_VERSION'",
      ),
    /4\.1\.0.*supports schemas up to 3\.x/,
  ],
  [
    'a page that is its own child',
    'E_TRACE_FILE',
    () =>
      patchedCopy('cycle.sqlite', (bytes) =>
        bytes.writeUInt32BE(kernelRootOffset / pageSize + 1, kernelRootOffset + 8),
      ),
    /referenced twice|its own successor|expected/,
  ],
  [
    'a pointer past the end',
    'E_TRACE_FILE',
    () => patchedCopy('past.sqlite', (bytes) => bytes.writeUInt32BE(0x7fffffff, kernelRootOffset + 8)),
    /refers to page 2147483647/,
  ],
  [
    'an impossible count of cells',
    'E_TRACE_FILE',
    () => patchedCopy('cells.sqlite', (bytes) => bytes.writeUInt16BE(0xffff, kernelRootOffset + 3)),
    /65535 cells/,
  ],
  [
    'a page of another kind',
    'E_TRACE_FILE',
    () => patchedCopy('kind.sqlite', (bytes) => bytes.writeUInt8(2, kernelRootOffset)),
    /has type 2/,
  ],
  [
    'rows that reach past their page',
    'E_TRACE_FILE',
    () =>
      patchedCopy('rows.sqlite', (bytes) => {
        const leaf =
          (bytes.readUInt32BE(bytes.readUInt16BE(kernelRootOffset + 12) + kernelRootOffset) - 1) * pageSize;
        bytes.writeUInt16BE(4090, leaf + 8);
      }),
    /row|value/,
  ],
  [
    'a capture with kernels that all end before they start',
    'E_TRACE_FILE',
    () => editedCopy('backwards.sqlite', 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1000'),
    /None of its 922 kernels/,
  ],
  [
    'another table in place of the kernel table',
    'E_TRACE_FILE',
    () =>
      editedCopy(
        'foreign.sqlite',
        `DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM NVTX_EVENTS`,
      ),
    /CUPTI_ACTIVITY_KIND_KERNEL has no column deviceId, streamId, gridX/,
  ],
  [
    'another table in place of the strings',
    'E_TRACE_FILE',
    () =>
      editedCopy(
        'strings.sqlite',
        'DROP TABLE StringIds; CREATE TABLE StringIds AS SELECT start, end FROM NVTX_EVENTS',
      ),
    /StringIds has no column id, value/,
  ],
  [
    'uncommitted changes in a -wal file',
    'E_TRACE_FILE',
    () => changedCopy('waiting.sqlite', (path) => writeFileSync(`${path}-wal`, 'frames')),
    /-wal exists/,
  ],
];

test.each(cases)('%s is %s, with what, why and fix', async (_name, code, makePath, why) => {
  const path = makePath();
  await expect(load(path)).rejects.toEqual(failure(code, why));
});

test('counts impossible times and missing names, and reads the other rows', async () => {
  const path = editedCopy(
    'odd.sqlite',
    `UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 5 WHERE rowid <= 3;
     UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = 9223372036854775807 WHERE rowid = 1;
     UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 99999, shortName = 99998 WHERE rowid BETWEEN 11 AND 14;
     ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN later INTEGER DEFAULT 7;`,
  );
  const { issues } = await load(path);
  const counts = Object.fromEntries(issues.map(({ code, count }) => [code, count]));
  expect(counts).toMatchObject({ impossible_times: 4, names_missing: 4 });
});

/** Count of each issue code of a capture. */
async function issueCounts(path: string): Promise<Record<string, number | undefined>> {
  const { issues } = await load(path);
  return Object.fromEntries(issues.map(({ code, count }) => [code, count]));
}

const countRows = (sql: string): number => {
  const database = new Database(capturePath, { readonly: true });
  const row = database.prepare(sql).get() as { n: number };
  database.close();
  return row.n;
};
const launchedKernels = (where: string) =>
  countRows(`SELECT count(*) AS n FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE ${where} AND EXISTS
    (SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId)`);

test('counts launches without kernels, duplicate kernels, kernels before their launch and impossible copies', async () => {
  const kernel = 'CUPTI_ACTIVITY_KIND_KERNEL';
  const launches =
    countRows(`SELECT count(*) AS n FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId
    WHERE value LIKE '%LaunchKernel%'`);
  expect(launches).toBeGreaterThan(900);
  expect(await issueCounts(editedCopy('nokernels.sqlite', `DELETE FROM ${kernel}`))).toMatchObject({
    no_kernels: launches,
  });
  expect(
    await issueCounts(editedCopy('twice.sqlite', `INSERT INTO ${kernel} SELECT * FROM ${kernel}`)),
  ).toMatchObject({ activities_repeated: 922 });
  const devices = `UPDATE ${kernel} SET deviceId = CASE rowid % 3 WHEN 0 THEN -1 WHEN 1 THEN 1099511627776 ELSE 0 END
    WHERE rowid <= 30`;
  expect(await issueCounts(editedCopy('devices.sqlite', devices))).toMatchObject({
    activities_without_device: 20,
  });
  const ids = ['CUPTI_ACTIVITY_KIND_RUNTIME', kernel].map(
    (table) =>
      `UPDATE ${table} SET correlationId = CASE rowid WHEN 4 THEN 9223372036854775807 WHEN 5 THEN 1e300 ELSE correlationId END`,
  );
  expect((await issueCounts(editedCopy('ids.sqlite', ids.join(';'))))['orphans']).toBeGreaterThanOrEqual(2);
  const early = editedCopy(
    'early.sqlite',
    `UPDATE ${kernel} SET start = start - 3600000000000, end = end - 3600000000000 WHERE rowid % 2 = 0`,
  );
  expect(await issueCounts(early)).toMatchObject({
    activities_before_launch: launchedKernels('rowid % 2 = 0'),
  });
  const calls = editedCopy(
    'calls.sqlite',
    'UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = start - 3600000000000, end = end - 3600000000000',
  );
  const { activities_after_launch: late } = await issueCounts(calls);
  expect(late).toBeGreaterThanOrEqual(launchedKernels('true'));
  const copies = countRows('SELECT count(*) AS n FROM CUPTI_ACTIVITY_KIND_MEMCPY');
  expect(
    await issueCounts(
      editedCopy('bytes.sqlite', 'UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 9223372036854775807'),
    ),
  ).toMatchObject({ copy_bytes_impossible: copies });
  const junk = changedCopy('junk.sqlite', (path) => appendFileSync(path, 'x'.repeat(5000)));
  expect(await issueCounts(junk)).toMatchObject({ trailing_bytes: 5000 });
});

test('a capture with neither kernels nor NVTX is an empty capture', async () => {
  const path = editedCopy(
    'none.sqlite',
    'DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY; DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET',
  );
  await expect(load(path)).resolves.toMatchObject({ clock: { resolution_ns: 1 } });
});

test('rejects a folder with a truncated Parquet file, or without the strings', async () => {
  const tiny = (table: string) => `${fixtures}/tiny-nsys.parquetdir/${table}.parquet`;
  // One folder per case, because a file replaced while it is read can end the process.
  const damaged = (name: string, damage: (file: (table: string) => string) => void): string => {
    const copy = join(folder, `${name}.parquetdir`);
    cpSync(`${fixtures}/tiny-nsys.parquetdir`, copy, { recursive: true });
    damage((table) => join(copy, `${table}.parquet`));
    return copy;
  };
  const kernels = 'CUPTI_ACTIVITY_KIND_KERNEL';
  const cut = damaged('cut', (file) => truncateSync(file(kernels), 3000));
  await expect(load(cut)).rejects.toEqual(
    failure('E_TRACE_FILE', /CUPTI_ACTIVITY_KIND_KERNEL.parquet is not a complete Parquet/),
  );
  const foreign = damaged('foreign', (file) => copyFileSync(tiny('NVTX_EVENTS'), file(kernels)));
  await expect(load(foreign)).rejects.toEqual(failure('E_TRACE_FILE', /KERNEL has no column deviceId/));
  const strings = damaged('strings', (file) => copyFileSync(tiny('NVTX_EVENTS'), file('StringIds')));
  await expect(load(strings)).rejects.toEqual(failure('E_TRACE_FILE', /StringIds has no column id, value/));
  const withoutStrings = damaged('without', (file) => rmSync(file('StringIds')));
  await expect(load(withoutStrings)).rejects.toEqual(failure('E_TRACE_FILE', /no StringIds.parquet/));
});

test('a report cannot be read directly: the error says how to export it', async () => {
  await expect(nsysRepImporter.load('r.nsys-rep', {} as never, {} as never)).rejects.toMatchObject({
    code: 'E_TOOL_MISSING',
    parts: { fix: expect.stringContaining('nsys export --type parquetdir r.nsys-rep') },
  });
});
