import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
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

interface Steps {
  prefills: number;
  decodes: number;
  /** Median time from one decode step to the next on the device, ms; not across another step. */
  decode_ms: number;
  /** Median kernel time of a prefill, ms. */
  prefill_ms: number;
  /** Rules of the findings that claim 5 % of a stage or more, in order. */
  rules: string[];
}

/** Steps of the nsys capture, and the first finding. */
async function stepsOf(id: string): Promise<Steps> {
  const session = await openSession(id, home);
  const database = await session.connect();
  const [row] = await database.query<Omit<Steps, 'rules'>>(
    `WITH RECURSIVE steps AS (
       SELECT stage_id, kind, device_start_ns AS start FROM stages
       WHERE device_start_ns IS NOT NULL AND kind IN ('prefill', 'decode') AND contains(capture_id, 'nsys')),
     inside AS (
       SELECT stage_id AS step, stage_id FROM steps
       UNION ALL SELECT step, s.stage_id FROM inside i JOIN stages s ON s.parent_id = i.stage_id),
     work AS (SELECT step, sum(dur_ns) AS ns FROM inside JOIN kernels USING (stage_id) GROUP BY 1),
     timed AS (SELECT kind, ns, lead(kind) OVER (ORDER BY start) AS next, lead(start) OVER (ORDER BY start) - start AS period
       FROM steps LEFT JOIN work ON step = stage_id)
     SELECT (count(*) FILTER (kind = 'prefill'))::INT AS prefills, (count(*) FILTER (kind = 'decode'))::INT AS decodes,
       median(period) FILTER (kind = 'decode' AND next = 'decode') / 1e6 AS decode_ms,
       median(ns) FILTER (kind = 'prefill') / 1e6 AS prefill_ms FROM timed`,
  );
  await database.close();
  const { findings } = (await explainSession(session)).data;
  const claims = findings.filter(({ severity }) => severity === 'high' || severity === 'medium');
  return { ...row!, rules: claims.map(({ rule }) => rule) };
}

const capture = {
  ...summary.captures[0]!,
  capture_id: 'nsys',
  tool: { name: 'nsys', version: '2025.3.1' },
  importer: 'nsys-parquetdir',
};

// Marked steps by hooks of `run` on an H200; the same capture without marks, by the repeating sequence of its kernels. The first finding
// without marks has the cause of the first one with marks, or of another one: copied experts are found with the model only.
test.each([
  ['dense, eager', 'diagnosis-stock/se_00_use_cache-fixed', 0, 0],
  ['logits on the host', 'diagnosis-stock/se_04_numpy-fault', 0, 0],
  ['a loop over experts', 'diagnosis-stock/se_14_experts-fault', 0, 0],
  ['experts', 'diagnosis-stock/se_14_experts-fixed', 0, 1],
  ['experts, four requests', 'experts-h200/batched', 0, 1],
  ['static cache', 'diagnosis-stock/se_21_uncompiled-fault', 0, 0],
  ['static cache, compiled', 'diagnosis-stock/se_21_uncompiled-fixed', 0, 0],
  // Two prompts of vLLM's own warm-up.
  ['vLLM, CUDA graphs', 'vllm-0.26-h200/run-in-process', 2, 0],
  ['SGLang, CUDA graphs', 'sglang-h200/nsys', 0, 0],
  ['an encoder and a decoder', 'unprepared-h200/bart', 0, 0],
])(
  '%s: steps and first finding without marks agree with the marked ones',
  async (_, fixture, more, place) => {
    const { id } = await importSession(`test/fixtures/${fixture}.tgz`, home);
    const folder = join(home.root, `${fixture.replace('/', '-')}.parquetdir`);
    await strippedExport(sessionTables(await openSession(id, home)).files, folder);
    const session = await createSession({ kind: 'import', label: 'stripped', home });
    const context = { execution_id: 'clean', capture_id: 'nsys', host: 'h' };
    await nsysParquetdirImporter.load(folder, session, {
      ...context,
      zero: { realtime_ns: null, monotonic_ns: null },
    });
    const stripped = await stepsOf((await session.finish({ ...summary, captures: [capture] })).id);
    const marked = await stepsOf(id);
    expect(stripped).toMatchObject({ prefills: marked.prefills + more, decodes: marked.decodes });
    expect(stripped.decode_ms / marked.decode_ms).toBeGreaterThan(0.98);
    expect(stripped.decode_ms / marked.decode_ms).toBeLessThan(1.03);
    // Sampling belongs to the inferred step.
    expect(stripped.prefill_ms / marked.prefill_ms).toBeGreaterThan(0.98);
    expect(stripped.prefill_ms / marked.prefill_ms).toBeLessThan(1.1);
    expect(marked.rules.indexOf(stripped.rules[0]!)).toBe(place);
  },
);
