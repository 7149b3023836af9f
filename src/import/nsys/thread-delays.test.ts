import Database from 'libsql';
import { copyFileSync, cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { openDatabase, quote } from '../../session/database.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { summary } from '../../session/test-session.js';
import { nsysParquetdirImporter, nsysSqliteImporter } from './importers.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-delays-test-'));
const home = homeFolders({ INFERSCOPE_HOME: folder });
const fixtures = 'test/fixtures/nsys-2025.3.1-h200';

/** The thread of the fixture that launches its kernels, the main one; a second one launches a few. */
const main = 281482945888731;
const pid = Number((BigInt(main) >> 24n) & 0xffffffn);
const other = (BigInt(pid) << 24n) + 99_999n;

type Table = [columns: string, rows: (string | number | bigint | null)[][]];

/**
 * Layout: a report of nsys 2025.3.1 on Linux, where every state is 0 (unknown); the fixture has no context switches.
 * @param runnable the state of a thread that left its core and could run
 */
const switchTables = (runnable: number): Record<string, Table> => ({
  SCHED_EVENTS: [
    'start BIGINT, cpu BIGINT, isSchedIn BIGINT, globalTid BIGINT, threadState BIGINT, threadBlock BIGINT',
    [
      [9_000_000, 0, 1, main, 0, null],
      // Outside of every call: between two launches.
      [10_070_000, 0, 0, main, runnable, null],
      [10_090_000, 0, 1, main, 0, null],
      // In a launch (10237787 to 10245603), which does not block.
      [10_240_000, 0, 0, main, runnable, null],
      [10_244_000, 0, 1, main, 0, null],
      // In a wait of the OS.
      [10_300_000, 0, 0, main, 2, null],
      [10_330_000, 0, 1, main, 0, null],
      // In another call of CUDA (9553358 to 9563204).
      [9_555_000, 0, 0, main, 2, null],
      [9_560_000, 0, 1, main, 0, null],
      // A thread that launches nothing.
      [11_000_000, 1, 0, other, runnable, null],
      [12_000_000, 1, 1, other, 0, null],
      [130_000_000, 0, 0, main, 0, null],
    ],
  ],
  ENUM_SAMPLING_THREAD_STATE: [
    'id BIGINT, name TEXT, label TEXT',
    [
      [0, 'Unknown', 'Unknown'],
      [1, 'Running', 'Running'],
      [2, 'Interruptible', 'Interruptible'],
    ],
  ],
});
const osCalls: Record<string, Table> = {
  OSRT_API: [
    'start BIGINT, "end" BIGINT, eventClass BIGINT, globalTid BIGINT, nameId BIGINT',
    [[10_298_000, 10_331_000, 27, main, 1]],
  ],
};

const literal = (value: string | number | bigint | null) =>
  typeof value === 'string' ? quote(value) : String(value);
const statements = (tables: Record<string, Table>) =>
  Object.entries(tables).flatMap(([name, [columns, rows]]) => [
    `CREATE TABLE ${name} (${columns})`,
    `INSERT INTO ${name} VALUES ${rows.map((row) => `(${row.map(literal).join(', ')})`).join(', ')}`,
  ]);

async function delaysOf(path: string) {
  const session = await createSession({ kind: 'import', label: 'nsys', home });
  const importer = path.endsWith('.sqlite') ? nsysSqliteImporter : nsysParquetdirImporter;
  const context = { execution_id: 'profiled', capture_id: 'nsys', host: 'h' };
  await importer.load(path, session, { ...context, zero: { realtime_ns: null, monotonic_ns: null } });
  const { id } = await session.finish(summary);
  const database = await (await openSession(id, home)).connect();
  const rows = await database.query<{ pid: number; scope: string; t_ns: number; value: number }>(
    "SELECT pid, scope, t_ns, value FROM telemetry WHERE metric = 'preempted_percent' ORDER BY ALL",
  );
  await database.close();
  return rows.map((row) => [row.pid, row.scope, row.t_ns, row.value]);
}

let files = 0;
function sqliteWith(tables: Record<string, Table>): string {
  const path = join(folder, `switches${files++}.sqlite`);
  copyFileSync(`${fixtures}/tiny-nsys.sqlite`, path);
  const file = new Database(path);
  for (const sql of statements(tables)) file.exec(sql);
  file.close();
  return path;
}

const thread = `thread${Number(BigInt(main) & 0xffffffn)}`;
/** From the first to the last context switch, with the two times without a core outside of calls that can block. */
const expected = [
  [pid, thread, 9_000_000, 0],
  [pid, thread, 10_070_000, 0],
  [pid, thread, 10_090_000, 100],
  [pid, thread, 10_240_000, 0],
  [pid, thread, 10_244_000, 100],
  [pid, thread, 130_000_000, 0],
];

test('a thread without a core outside of all calls was preempted: by OS calls, or by its state', async () => {
  const byCalls = await delaysOf(sqliteWith({ ...switchTables(0), ...osCalls }));
  expect(byCalls).toEqual(expected);
  expect(await delaysOf(sqliteWith(switchTables(1)))).toEqual(expected);
});

test('reads the same from a parquetdir', async () => {
  const parquet = join(folder, 'switches.parquetdir');
  cpSync(`${fixtures}/tiny-nsys.parquetdir`, parquet, { recursive: true });
  const tables = { ...switchTables(0), ...osCalls };
  const { connection, close } = await openDatabase();
  for (const sql of statements(tables)) await connection.run(sql);
  for (const name of Object.keys(tables))
    await connection.run(`COPY ${name} TO ${quote(join(parquet, `${name}.parquet`))} (FORMAT parquet)`);
  await close();
  expect(await delaysOf(parquet)).toEqual(expected);
});

test('context switches without a state or OS calls do not say why: nothing is saved', async () => {
  expect(await delaysOf(sqliteWith(switchTables(0)))).toEqual([]);
});
