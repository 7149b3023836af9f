import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventArrays } from '../import/attribution/in-memory/trace.js';
import { type EventTarget, takeEvents } from '../import/nsys/take-events.js';
import { createSession } from '../session/create.js';
import { homeFolders } from '../session/home.js';
import { testFolder } from '../session/test-folder.js';

/** Enough rows to use a thread, with several full row groups and a partial one. */
const many = 500_001;

/** Every seventh row ends before it starts. */
const events = `SELECT 1000000 + range * 10 AS start, start + CASE WHEN range % 7 = 6 THEN -1 ELSE range % 5 END AS "end",
  CASE WHEN range % 3 > 0 THEN range END AS "correlationId", (range // 1000) % 4 + 2::BIGINT ** 52 AS shape FROM range(${many})`;

const target = (rows: number): EventTarget => ({
  into: eventArrays(rows, false),
  first_row: 2,
  first_code: 10,
  offset_ns: -500,
  limit_ns: 2 ** 53,
});

async function eventsInFile() {
  const home = homeFolders({ INFERSCOPE_HOME: join(testFolder(), 'home') });
  const session = await createSession({ kind: 'import', label: 'scan', home });
  const { workbench } = session;
  const file = join(session.scratch, 'events.parquet');
  await workbench.run(`COPY (${events}) TO '${file}' (FORMAT parquet)`);
  return { session, workbench, file };
}

test('a worker thread reads the same arrays as this thread', async () => {
  const { session, workbench, file } = await eventsInFile();
  const sql = `SELECT * FROM read_parquet('${file}')`;
  const [inThread, inline] = [target(many + 2), target(many + 2)];
  const read = await workbench.scanFiles({ sql, rows: many, input: inThread }, takeEvents);
  const sound = many - Math.floor(many / 7);
  expect(read).toMatchObject({ rows: sound, impossible: many - sound, sorted: true });
  expect([...read.first_rows]).toEqual([0, 1000, 2000, 3000]);
  expect(read.counts.reduce((a, b) => a + b)).toBe(many);
  expect([...read.keys]).toEqual([0, 1, 2, 3].map((key) => 2 ** 52 + key));
  // Compares the last row in the arrays with that row of the file.
  const last = many - 1 - (many % 7 === 0 ? 1 : 0);
  expect(inThread.into.start_ns[sound + 1]).toBe(1_000_000 + last * 10 - 500);
  expect(inThread.into.shape[sound + 1]).toBe(10 + (Math.floor(last / 1000) % 4));

  expect(await workbench.scanFiles({ sql, rows: 1, input: inline }, takeEvents)).toEqual(read);
  for (const name of ['start_ns', 'dur_ns', 'correlation', 'shape'] as const)
    expect(Buffer.compare(bytesOf(inThread.into[name]), bytesOf(inline.into[name]))).toBe(0);

  const lost = { sql: `SELECT * FROM read_parquet('${file}.lost')`, rows: many, input: target(2) };
  await expect(workbench.scanFiles(lost, takeEvents)).rejects.toThrow('events.parquet.lost');
  const short = { sql, rows: many, input: target(1000) };
  await expect(workbench.scanFiles(short, takeEvents)).rejects.toThrow('more rows than its file declares');

  // DuckDB's stream does not report an unreadable page.
  const bytes = readFileSync(file);
  bytes.fill(0, bytes.length >> 1, (bytes.length >> 1) + 100_000);
  writeFileSync(file, bytes);
  const broken = { sql, rows: many, input: target(many + 2) };
  await expect(workbench.scanFiles(broken, takeEvents)).rejects.toThrow('events.parquet');
  await session.abandon();
});

test('closing does not wait for rows, and leaves no statement running', async () => {
  const { session, workbench, file } = await eventsInFile();
  const sql = `SELECT a.* FROM read_parquet('${file}') a, range(1000)`;
  const reading = workbench.scanFiles({ sql, rows: many, input: target(10 * many) }, takeEvents);
  const running = workbench.run(
    'CREATE TABLE endless AS SELECT max(a.range) FROM range(100000000) a, range(1000)',
  );
  const ends = Promise.all([
    expect(reading).rejects.toThrow('stopped'),
    expect(running).rejects.toThrow('INTERRUPT'),
  ]);
  await session.abandon();
  await ends;
});

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array | Int32Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}
