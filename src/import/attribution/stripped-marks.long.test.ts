import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { createSession } from '../../session/create.js';
import { openDatabase, quote } from '../../session/database.js';
import { openSession, sessionTables } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { nsysParquetdirImporter } from '../nsys/importers.js';

const home = testHome();

/** Writes kernels, calls and copies of a session's nsys capture as an export of nsys without any range. */
async function strippedExport(files: Record<string, string[]>, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { connection, close } = await openDatabase();
  const rowsOf = (table: string) =>
    `read_parquet([${files[table]!.filter((path) => path.includes('nsys'))
      .map(quote)
      .join(', ')}])`;
  const id = (column: string) => `(SELECT id FROM strings WHERE value = ${column})`;
  const size = (column: string, index: number) =>
    `coalesce(TRY_CAST(regexp_extract_all(${column}, '[0-9]+')[${index}] AS BIGINT), 1)`;
  const dims = ['X', 'Y', 'Z'].flatMap((axis, index) => [
    `${size('grid', index + 1)} AS grid${axis}`,
    `${size('"block"', index + 1)} AS block${axis}`,
  ]);
  const pid = '(1::BIGINT << 56) + (coalesce(pid, 1)::BIGINT << 24)';
  const device =
    'start_ns::BIGINT AS start, (start_ns + dur_ns)::BIGINT AS "end", coalesce(device, 0)::BIGINT AS "deviceId", 1::BIGINT AS "contextId", coalesce(stream, 7)::BIGINT AS "streamId", correlation::BIGINT AS "correlationId"';
  await connection.run(
    `CREATE TABLE strings AS SELECT row_number() OVER (ORDER BY value) AS id, value FROM (
       SELECT name AS value FROM ${rowsOf('kernels')} UNION SELECT short_name FROM ${rowsOf('kernels')} UNION SELECT name FROM ${rowsOf('api_calls')})`,
  );
  const tables: Record<string, string> = {
    StringIds: 'SELECT * FROM strings',
    CUPTI_ACTIVITY_KIND_KERNEL: `SELECT ${device}, ${pid} AS "globalPid", ${id('name')} AS "demangledName", ${id('short_name')} AS "shortName", ${dims.join(', ')}, graph_node::BIGINT AS "graphNodeId" FROM ${rowsOf('kernels')} k`,
    CUPTI_ACTIVITY_KIND_RUNTIME: `SELECT start_ns::BIGINT AS start, (start_ns + dur_ns)::BIGINT AS "end", ${pid} + coalesce(tid, 1)::BIGINT AS "globalTid", correlation::BIGINT AS "correlationId", ${id('name')} AS "nameId" FROM ${rowsOf('api_calls')} a`,
    CUPTI_ACTIVITY_KIND_MEMCPY: `SELECT ${device}, ${pid} AS "globalPid", bytes::BIGINT AS bytes, CASE kind WHEN 'HtoD' THEN 1 WHEN 'DtoH' THEN 2 ELSE 8 END AS "copyKind" FROM ${rowsOf('copies')} c`,
  };
  for (const [name, sql] of Object.entries(tables))
    await connection.run(`COPY (${sql}) TO ${quote(join(folder, `${name}.parquet`))} (FORMAT parquet)`);
  await close();
}

/** Number of steps of a kind after warm-up, and the median time from one to the next on the device, ms. */
async function stepsOf(id: string, kind: string): Promise<{ n: number; ms: number }> {
  const database = await (await openSession(id, home)).connect();
  const [row] = await database.query<{ n: number; ms: number }>(
    `SELECT count(*) AS n, median(ns) / 1e6 AS ms FROM (
       SELECT kind, warmup, lead(device_start_ns) OVER (ORDER BY device_start_ns) - device_start_ns AS ns
       FROM stages WHERE device_start_ns IS NOT NULL AND kind IN ('prefill', 'decode', '${kind}') AND contains(capture_id, 'nsys'))
     WHERE kind = '${kind}' AND NOT coalesce(warmup, false)`,
  );
  await database.close();
  return row!;
}

// Marked steps by hooks of `run` on an H200; the same capture without marks, by the repeating sequence of its kernels. Where nothing
// distinguishes a prompt from a token, the steps are of unknown kind: those of the experts then include the prefill.
test.each([
  ['dense, eager', 'diagnosis-stock/se_00_use_cache-fixed', 'decode', 0],
  ['experts', 'diagnosis-stock/se_14_experts-fixed', 'other', 1],
  ['static cache, compiled', 'diagnosis-stock/se_21_uncompiled-fixed', 'other', 0],
  ['vLLM, CUDA graphs', 'vllm-0.26-h200/run-in-process', 'decode', 0],
])('%s: decode steps without marks agree with the marked ones', async (_, fixture, kind, more) => {
  const { id } = await importSession(`test/fixtures/${fixture}.tgz`, home);
  const folder = join(home.root, `${fixture.replace('/', '-')}.parquetdir`);
  await strippedExport(sessionTables(await openSession(id, home)).files, folder);
  const session = await createSession({ kind: 'import', label: 'stripped', home });
  const context = { execution_id: 'profiled', capture_id: 'nsys', host: 'h' };
  await nsysParquetdirImporter.load(folder, session, {
    ...context,
    zero: { realtime_ns: null, monotonic_ns: null },
  });
  const stripped = await stepsOf((await session.finish(summary)).id, kind);
  const marked = await stepsOf(id, 'decode');
  expect(stripped.n).toBe(marked.n + more);
  expect(stripped.ms / marked.ms).toBeGreaterThan(0.98);
  expect(stripped.ms / marked.ms).toBeLessThan(1.02);
});
