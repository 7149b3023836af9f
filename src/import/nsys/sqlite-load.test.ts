import { build } from 'tsdown';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Workbench } from '../../model/workbench.js';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { dropTraceTables } from '../trace-tables.js';
import { mainThreadLane, workerLane } from './sqlite-lanes.js';
import { openSqlite, type SqliteFile } from './sqlite-file.js';
import { loadSqlite, type LoadOptions } from './sqlite-load.js';
import { createTrace } from './trace.js';

const fixture = 'test/fixtures/nsys-2025.3.1-h200/tiny-whole.sqlite';
const folder = mkdtempSync(join(tmpdir(), 'inferscope-nsys-load-'));
const entry = join(folder, 'sqlite-worker.js');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  await build({
    config: false,
    entry: ['src/import/nsys/sqlite-worker.ts'],
    format: 'esm',
    platform: 'node',
    outDir: folder,
    clean: false,
    dts: false,
    logLevel: 'silent',
    outExtensions: () => ({ js: '.js' }),
  });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
}, 60_000);

const sums = `SELECT (SELECT count(*) FROM trace_kernels) AS kernels, (SELECT sum(start_ns) FROM trace_kernels) AS starts,
  (SELECT sum(dur_ns) FROM trace_kernels k JOIN trace_names n ON n.code = k.name) AS time,
  (SELECT string_agg(text, ';' ORDER BY text) FROM trace_names) AS names,
  (SELECT sum(correlation) FROM trace_api) AS correlations, (SELECT sum(tid) FROM trace_api) AS tids,
  (SELECT sum(end_ns) FROM trace_ranges) AS ends, (SELECT sum(bytes) FROM trace_copies) AS bytes`;

async function withSession<T>(use: (workbench: Workbench) => Promise<T>): Promise<T> {
  const home = homeFolders({ INFERSCOPE_HOME: folder });
  const session = await createSession({ kind: 'import', label: 'lanes', home });
  try {
    return await use(session.workbench);
  } finally {
    await session.abandon();
  }
}

const readCapture = (path: string, options: LoadOptions) =>
  withSession(async (workbench) => {
    const file = openSqlite(path);
    try {
      const { issues } = await createTrace(workbench, await loadSqlite(file, workbench, options), 0);
      const rows = await workbench.query(sums);
      await dropTraceTables(workbench);
      return { issues, rows };
    } finally {
      file.close();
    }
  });

test('two workers with separate codes read the same as one thread', async () => {
  const oneThread = await readCapture(fixture, { lanes: (file: SqliteFile) => [mainThreadLane(file)] });
  const twoWorkers = await readCapture(fixture, {
    lanes: ({ path }) => [workerLane(path, entry), workerLane(path, entry)],
  });
  const twoLanes = await readCapture(fixture, {
    lanes: (file) => [mainThreadLane(file), mainThreadLane(file)],
  });
  expect(twoWorkers).toEqual(oneThread);
  expect(twoLanes).toEqual(oneThread);
});

test('reports damage found by a worker like damage found on this thread', async () => {
  const path = join(folder, 'damaged.sqlite');
  copyFileSync(fixture, path);
  const file = openSqlite(path);
  const lane = workerLane(path, entry);
  await expect(lane.decode('kernel', Uint32Array.from([file.pages + 3]))).rejects.toMatchObject({
    code: 'E_TRACE_FILE',
  });
  await lane.close();
  file.close();
});

test('Ctrl-C stops the reading', async () => {
  await expect(readCapture(fixture, { signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'E_INTERRUPTED',
  });
});
