import Database from 'libsql';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { attribute } from '../attribution/attribute.js';
import { importWith, type Imported } from '../attribution/test-import.js';
import { dropTraceTables, maxNameLength } from '../trace-tables.js';
import { openParquetdir } from './parquetdir.js';
import { openSqlite } from './sqlite-file.js';
import { loadSqlite } from './sqlite-load.js';
import { createTrace } from './trace.js';
import { readTraceInMemory } from './trace-in-memory.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const captures = readdirSync(fixtures).filter((name) => /\.(sqlite|parquetdir)$/.test(name));

function importCapture(path: string, inMemory: boolean): Promise<Imported> {
  return importWith(async ({ workbench }, context) => {
    const file = path.endsWith('.sqlite') ? openSqlite(path) : null;
    const tables = file
      ? await loadSqlite(file, workbench, { inMemory })
      : await openParquetdir(path, workbench);
    // An offset, as for a capture imported with others.
    const { issues, trace } = inMemory
      ? await readTraceInMemory(workbench, tables, 12_345)
      : { ...(await createTrace(workbench, tables, 12_345)), trace: null };
    const attributed = await attribute(workbench, context, trace);
    await dropTraceTables(workbench);
    file?.close();
    const remainingTables = await workbench.query(
      "SELECT table_name FROM information_schema.tables WHERE table_name ~ '^(nsys|trace|attr)_'",
    );
    expect(remainingTables).toEqual([]);
    return { issues: [...issues, ...attributed.issues] };
  });
}

/** Every row of every table, sorted by value. */
async function readAllTables({ database, issues }: Imported): Promise<Record<string, unknown>> {
  const rows: Record<string, unknown> = { issues };
  for (const table of ['kernels', 'copies', 'api_calls', 'stages', 'gaps', 'ops'])
    rows[table] = await database.query(`SELECT * FROM ${table} ORDER BY ALL`);
  await database.close();
  return rows;
}

test.each(captures)('%s: the same tables from memory and from tables', async (name) => {
  const path = `${fixtures}/${name}`;
  expect(await readAllTables(await importCapture(path, true))).toEqual(
    await readAllTables(await importCapture(path, false)),
  );
});

const folder = mkdtempSync(join(tmpdir(), 'inferscope-nsys-held-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a capture out of order, with impossible rows, graphs together with kernels and a missing column gives the same', async () => {
  const path = join(folder, 'odd.parquetdir');
  cpSync(`${fixtures}/tiny-nsys.parquetdir`, path, { recursive: true });
  const table = (name: string) => join(path, `CUPTI_ACTIVITY_KIND_${name}.parquet`);
  await importWith(async ({ workbench }) => {
    const rewrite = async (from: string, to: string, select: string) => {
      await workbench.run(`COPY (SELECT ${select} FROM '${table(from)}') TO '${path}.new' (FORMAT parquet)`);
      renameSync(`${path}.new`, table(to));
    };
    await rewrite(
      'KERNEL',
      'GRAPH_TRACE',
      `start + 7 AS start, "end" + 9 AS "end", deviceId, contextId, streamId,
      correlationId, globalPid, 3 AS graphId`,
    );
    await rewrite(
      'KERNEL',
      'KERNEL',
      `* EXCLUDE (graphNodeId, "end"),
      CASE WHEN correlationId % 5 = 0 THEN start - 1 ELSE "end" END AS "end"`,
    );
    await workbench.run(
      `COPY (SELECT * FROM '${table('KERNEL')}' ORDER BY hash(start), correlationId) TO '${path}.new' (FORMAT parquet)`,
    );
    renameSync(`${path}.new`, table('KERNEL'));
    return { issues: [] };
  });
  const fromMemory = await readAllTables(await importCapture(path, true));
  expect(fromMemory).toEqual(await readAllTables(await importCapture(path, false)));
  expect(fromMemory).toMatchObject({
    issues: expect.arrayContaining([expect.objectContaining({ code: 'impossible_times' })]),
  });
});

test('drops duplicate kernels, kernels an hour early and copies of 2^62 bytes in both, and the other rows are the same', async () => {
  const path = join(folder, 'impossible.sqlite');
  copyFileSync(`${fixtures}/tiny-nsys.sqlite`, path);
  const database = new Database(path);
  database.exec(`UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 3600000000000, end = end - 3600000000000
      WHERE correlationId % 3 = 0;
    UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 1 << 62 WHERE rowid % 2 = 0;
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL;
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT * FROM CUPTI_ACTIVITY_KIND_MEMCPY;`);
  const [kernels] = database
    .prepare(
      `SELECT count(*) AS n, sum(end - start) AS ns FROM (SELECT DISTINCT * FROM CUPTI_ACTIVITY_KIND_KERNEL k
       WHERE correlationId % 3 <> 0 OR NOT EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId))`,
    )
    .all() as { n: number; ns: number }[];
  database.close();
  const fromMemory = await readAllTables(await importCapture(path, true));
  expect(fromMemory).toEqual(await readAllTables(await importCapture(path, false)));
  const rows = fromMemory['kernels'] as { dur_ns: number }[];
  expect({ n: rows.length, ns: rows.reduce((sum, { dur_ns }) => sum + Number(dur_ns), 0) }).toEqual(kernels);
});

test.each([true, false])('truncates names of 100,000 letters (in memory: %s)', async (inMemory) => {
  const path = join(folder, `long-${inMemory}.sqlite`);
  copyFileSync(`${fixtures}/tiny-whole.sqlite`, path);
  const database = new Database(path);
  database.exec('UPDATE StringIds SET value = value || hex(zeroblob(50000))');
  database.close();
  const { database: session } = await importCapture(path, inMemory);
  const letters = await session.query('SELECT DISTINCT length(name::VARCHAR)::INTEGER AS n FROM kernels');
  await session.close();
  expect(letters).toEqual([{ n: maxNameLength }]);
});
