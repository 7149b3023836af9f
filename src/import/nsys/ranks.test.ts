import Database from 'libsql';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { importWith } from '../attribution/test-import.js';
import { nsysSqliteImporter } from './importers.js';

const fixture = 'test/fixtures/nsys-2025.3.1-h200/tiny-nsys.sqlite';

test('each of several GPU processes has the rank of its device; a launcher has none', async () => {
  const path = join(testFolder(), 'two.sqlite');
  copyFileSync(fixture, path);
  const database = new Database(path);
  const otherPid = 7 * 2 ** 24;
  // A second process, with a smaller pid and on device 1, has a copy of every row of the first; a third has only a
  // range.
  const copy = (table: string, changes: Record<string, string>) => {
    const names = (database.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(
      ({ name }) => name,
    );
    const values = names.map((name) => changes[name] ?? `"${name}"`);
    database.exec(`INSERT INTO ${table} SELECT ${values.join(', ')} FROM ${table}`);
  };
  const process = { globalPid: `${otherPid}`, deviceId: '1' };
  copy('CUPTI_ACTIVITY_KIND_KERNEL', process);
  copy('CUPTI_ACTIVITY_KIND_MEMCPY', process);
  copy('CUPTI_ACTIVITY_KIND_RUNTIME', { globalTid: `${otherPid} + (globalTid & 16777215)` });
  copy('NVTX_EVENTS', { globalTid: `${otherPid} + (globalTid & 16777215)` });
  database.exec(`UPDATE NVTX_EVENTS SET globalTid = ${3 * 2 ** 24 + 3}
    WHERE rowid = (SELECT rowid FROM NVTX_EVENTS WHERE eventType = 59 AND "end" IS NOT NULL LIMIT 1)`);
  database.close();

  const imported = await importWith((target, context) => nsysSqliteImporter.load(path, target, context));
  expect(
    await imported.database.query(
      'SELECT pid, device, rank, count(*) AS n FROM kernels GROUP BY ALL ORDER BY rank',
    ),
  ).toEqual([
    { pid: 475, device: 0, rank: 0, n: expect.any(Number) },
    { pid: 7, device: 1, rank: 1, n: expect.any(Number) },
  ]);
  expect(await imported.database.query('SELECT DISTINCT pid, rank FROM stages ORDER BY pid')).toEqual([
    { pid: 3, rank: null },
    { pid: 7, rank: 1 },
    { pid: 475, rank: 0 },
  ]);
  await imported.database.close();
});

test.each([
  ['no kernel names its process', 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL'],
  ['kernels have no such column', 'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid'],
])('%s: kernels belong to the only process with API calls', async (_, change) => {
  const path = join(testFolder(), 'one.sqlite');
  copyFileSync(fixture, path);
  const database = new Database(path);
  database.exec(change);
  database.close();
  const load = (from: string) =>
    importWith((target, context) => nsysSqliteImporter.load(from, target, context));
  const sql =
    'SELECT pid, rank, stage_id, attributed_by, api_start_ns IS NULL AS orphan, count(*) AS n FROM kernels GROUP BY ALL ORDER BY ALL';
  const [changed, original] = [await load(path), await load(fixture)];
  expect(await changed.database.query(sql)).toEqual(await original.database.query(sql));
  await changed.database.close();
  await original.database.close();
});
