import { expect, test } from 'vitest';
import { join } from 'node:path';
import { openSession } from './open.js';
import { createSession } from './create.js';
import { homeFolders } from './home.js';
import { summary } from './test-session.js';
import { testFolder } from './test-folder.js';

const rows = 5000; // more than two of DuckDB's chunks

async function openWriter() {
  const home = homeFolders({ INFERSCOPE_HOME: join(testFolder(), 'home') });
  const session = await createSession({ kind: 'import', label: 'bench', home });
  return { home, session };
}

test('writes columns in bulk with names as codes, saves them as a table and reads them back', async () => {
  const { home, session } = await openWriter();
  const { workbench } = session;
  const table = await workbench.createTable('raw', ['start_ns', 'name', 'registers']);
  const start_ns = Float64Array.from({ length: rows }, (_, i) => 2 ** 52 + i);
  const registers = Float64Array.from({ length: rows }, (_, i) => (i % 2 ? i : Number.NaN));
  table.append({ start_ns, name: Float64Array.from({ length: rows }, (_, i) => i % 3), registers }, rows - 1);
  table.append({ start_ns: start_ns.subarray(rows - 1), name: new Float64Array([Number.NaN]) }, 1);
  table.close();
  await workbench.createNames('names', ['a', 'b\0b', "c'"]);
  const select = 'SELECT start_ns, registers, text AS name FROM raw LEFT JOIN names ON code = raw.name';
  expect(await workbench.save('kernels', 'c1', select, { execution_id: "it's", device: 0, pid: null })).toBe(
    rows,
  );
  const { id } = await session.finish(summary);

  const database = await (await openSession(id, home)).connect();
  const [row] = await database.query(`SELECT count(*) AS n, min(start_ns) AS first, max(start_ns) AS last,
    count(registers) AS registers, sum(registers) AS sum, count(name) AS names, count(pid) AS pids,
    list(DISTINCT name ORDER BY name) AS texts, any_value(execution_id) AS execution, any_value(capture_id) AS capture
    FROM kernels`);
  await database.close();
  const oddRows = Array.from({ length: rows - 1 }, (_, i) => i).filter((i) => i % 2);
  expect(row).toEqual({
    n: rows,
    first: 2 ** 52,
    last: 2 ** 52 + rows - 1,
    registers: oddRows.length,
    sum: oddRows.reduce((a, b) => a + b, 0),
    names: rows - 1,
    pids: 0,
    texts: ['a', 'b\u2400b', "c'", null],
    execution: "it's",
    capture: 'c1',
  });
});

test('scan streams every row in order, nulls as NaN, while another statement runs', async () => {
  const { session } = await openWriter();
  const { workbench } = session;
  const sum = await workbench.createTable('sums', ['value']);
  let next = 0;
  const scanned = workbench.scan(
    `SELECT range AS i, nullif(range, 3) AS j, range > 10 AS big FROM range(${rows})`,
  );
  for await (const { rows: count, columns } of scanned) {
    for (let r = 0; r < count; r++, next++) {
      expect(columns['i']![r]).toBe(next);
      expect(columns['j']![r]).toBe(next === 3 ? Number.NaN : next);
      expect(columns['big']![r]).toBe(next > 10 ? 1 : 0);
    }
    sum.append({ value: columns['i']! }, count);
    await workbench.query('SELECT 1 AS one');
  }
  sum.close();
  expect(next).toBe(rows);
  expect(await workbench.query('SELECT count(*) AS n, sum(value) AS s FROM sums')).toEqual([
    { n: rows, s: (rows * (rows - 1)) / 2 },
  ]);
  await session.abandon();
});

test('rejects an unknown column, and a table that is saved twice', async () => {
  const { session } = await openWriter();
  const { workbench } = session;
  await expect(workbench.save('kernels', 'c', 'SELECT 1 AS nosuch', {})).rejects.toThrow('nosuch');
  await workbench.save('kernels', 'c', 'SELECT 1 AS start_ns', {});
  await expect(workbench.save('kernels', 'c', 'SELECT 1 AS start_ns', {})).rejects.toThrow('saved already');
  await session.abandon();
});

test('a dropped capture leaves no rows from the sink or the workbench; others stay', async () => {
  const { home, session } = await openWriter();
  for (const captureId of ['bad', 'good']) {
    await session.workbench.save('kernels', captureId, 'SELECT 1 AS start_ns', {});
    session.sink.append('ops', { capture_id: captureId, start_ns: 1 });
  }
  session.forget('bad');
  const { id } = await session.finish(summary);
  const { manifest } = await openSession(id, home);
  expect(
    Object.values(manifest.tables)
      .flat()
      .map(({ capture_id }) => capture_id),
  ).toEqual(['good', 'good']);
});

test('reports a statement that fails in the middle of its rows', async () => {
  const { session } = await openWriter();
  // Far enough after the first rows that these are already streamed.
  const many = 5_000_000;
  const sql = `SELECT CASE WHEN range = ${many - 1000} THEN error('no more') ELSE range END AS i FROM range(${many})`;
  let rowsSeen = 0;
  const read = async () => {
    for await (const { rows: count } of session.workbench.scan(sql)) rowsSeen += count;
  };
  await expect(read()).rejects.toThrow('no more');
  expect(rowsSeen).toBeGreaterThan(0);
  await session.abandon();
});

test('raises the memory limit for statements that need more, also in the middle of their rows', async () => {
  const { session } = await openWriter();
  const { workbench } = session;
  await workbench.limit({ memory_bytes: 16 * 2 ** 20 });
  // A list cannot be spilled; this one has 24 MB.
  const list = 'SELECT list(range) AS l FROM range(3000000)';
  await workbench.run(`CREATE TABLE lengths AS SELECT len(l) AS n FROM (${list})`);
  expect(await workbench.query('SELECT n FROM lengths')).toEqual([{ n: 3_000_000 }]);
  const limit = () => workbench.query("SELECT current_setting('memory_limit') AS is");
  expect(await limit()).not.toEqual([{ is: '16.0 MiB' }]);

  await workbench.limit({ memory_bytes: 16 * 2 ** 20 });
  // The rows before it are streamed when the row that needs the list is reached.
  const late = `SELECT range AS i FROM range(3000000) UNION ALL SELECT len(l) FROM (${list})`;
  let [count, sum] = [0, 0];
  for await (const { rows: n, columns } of workbench.scan(late)) {
    for (let r = 0; r < n; r++) sum += columns['i']![r]!;
    count += n;
  }
  expect(await limit()).not.toEqual([{ is: '16.0 MiB' }]);
  expect(count).toBe(3_000_001);
  expect(sum).toBe((3_000_000 * 2_999_999) / 2 + 3_000_000);
  await session.abandon();
});
