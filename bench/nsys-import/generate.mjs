// Writes a synthetic nsys capture of the size in the README: 3.72 M kernels, 5.08 M API rows, 0.45 M NVTX ranges, as
// parquetdir and as sqlite. Kernel names are from an H200 capture; one step has 519 launches among 709 calls.
// node bench/nsys-import/generate.mjs FOLDER [--steps 7168] [--no-sqlite]
import { DuckDBInstance } from '@duckdb/node-api';
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { steps: { type: 'string', default: '7168' }, 'no-sqlite': { type: 'boolean', default: false } },
});
const [folder] = positionals;
if (!folder) throw new Error('give a folder');
const steps = Number(values.steps);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const real = join(root, 'test/fixtures/nsys-2025.3.1-h200/tiny-nsys.parquetdir');
const parquetdir = join(folder, 'synthetic.parquetdir');
rmSync(parquetdir, { recursive: true, force: true });
mkdirSync(parquetdir, { recursive: true });

// 520 launches are spread evenly over the calls; the last falls on the final call, which is a synchronization instead.
const [calls, launches, layers, call_ns] = [709, 520, 31, 6000];
const step_ns = calls * call_ns + 200_000;
const pid = 4242n;
const globalPid = (1n << 56n) | (pid << 24n);
const globalTid = globalPid | pid;

const instance = await DuckDBInstance.create(':memory:', { memory_limit: '4GiB' });
const db = await instance.connect();
const rows = async (sql) => (await db.run(sql)).getRowsJS();

// A hash of the row number instead of random(), so that the file is always the same.
const jitter = (salt, below) => `CAST(hash(i, ${salt}) % ${below} AS BIGINT)`;
await db.run(
  `CREATE TABLE strings AS SELECT id, value FROM '${real}/StringIds.parquet' WHERE NOT contains(value, chr(0))`,
);
const nextId = Number((await rows('SELECT max(id) + 1 FROM strings'))[0][0]);
for (let l = 0; l < layers; l++)
  await db.run(
    `INSERT INTO strings VALUES (${nextId + 2 * l}, 'layer.${l}'), (${nextId + 2 * l + 1}, 'layer.${l}.attention')`,
  );
const callNames = [
  'cudaMemcpyAsync_v3020',
  'cudaEventRecord_v3020',
  'cudaStreamIsCapturing_v10000',
  'cudaStreamSynchronize_v3020',
  'cudaLaunchKernel_v7000',
];
const callId = Object.fromEntries(callNames.map((name, i) => [name, nextId + 2 * layers + i]));
for (const [name, id] of Object.entries(callId))
  await db.run(`INSERT INTO strings VALUES (${id}, '${name}')`);
await db.run(`CREATE TABLE kernel_kinds AS SELECT row_number() OVER () - 1 AS kind, * FROM (SELECT DISTINCT demangledName, shortName,
  mangledName, gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory FROM '${real}/CUPTI_ACTIVITY_KIND_KERNEL.parquet')`);
const kinds = Number((await rows('SELECT count(*) FROM kernel_kinds'))[0][0]);

const launchOf = `(a * ${launches}) // ${calls}`;
await db.run(`CREATE TABLE api AS SELECT i, i // ${calls} AS step, i % ${calls} AS a,
  step * ${step_ns} + a * ${call_ns} + ${jitter(1, 1500)} AS start,
  start + CASE WHEN a = ${calls - 1} THEN 150000 ELSE 1500 + ${jitter(2, 2500)} END AS "end",
  ((a + 1) * ${launches}) // ${calls} > ${launchOf} AND a < ${calls - 1} OR a = ${calls - 2} AS launch,
  i + 1 AS correlationId FROM range(${steps * calls}) t(i)`);
const tables = {
  StringIds: 'SELECT CAST(id AS INTEGER) AS id, value FROM strings ORDER BY id',
  META_DATA_EXPORT: `SELECT * FROM (VALUES ('EXPORT_PRODUCT_NAME', 'NVIDIA Nsight Systems'), ('EXPORT_PRODUCT_VERSION', '2025.3.2.0'),
    ('EXPORT_SCHEMA_VERSION', '3.20.3'), ('EXPORT_SCHEMA_VERSION_MAJOR', '3')) t(name, value)`,
  TARGET_INFO_SESSION_START_TIME: 'SELECT 1795237080391862835::UBIGINT AS utcEpochNs',
  CUPTI_ACTIVITY_KIND_RUNTIME: `SELECT start, "end", 0::UINTEGER AS eventClass, ${globalTid}::UBIGINT AS globalTid,
    correlationId::UINTEGER AS correlationId, (CASE WHEN launch THEN ${callId[callNames[4]]} WHEN a = ${calls - 1} THEN ${callId[callNames[3]]}
      WHEN a % 20 = 0 THEN ${callId[callNames[0]]} WHEN a % 2 = 0 THEN ${callId[callNames[1]]} ELSE ${callId[callNames[2]]} END)::UBIGINT AS nameId,
    0::UINTEGER AS returnValue, NULL::BIGINT AS callchainId FROM api ORDER BY i`,
  CUPTI_ACTIVITY_KIND_KERNEL: `SELECT api."end" + 1200 + ${jitter(3, 400)} AS start,
    api."end" + 1700 + ${jitter(4, 1500)} AS "end", 0::UINTEGER AS deviceId, 1::UBIGINT AS contextId, 0::UBIGINT AS greenContextId,
    7::UBIGINT AS streamId, correlationId::UINTEGER AS correlationId, ${globalPid}::UBIGINT AS globalPid,
    demangledName, shortName, mangledName, 1::UINTEGER AS launchType, 0::UINTEGER AS cacheConfig, registersPerThread, gridX, gridY, gridZ, blockX, blockY,
    blockZ, staticSharedMemory, dynamicSharedMemory, 0::INTEGER AS localMemoryPerThread, 221380608::INTEGER AS localMemoryTotal,
    i AS gridId, 32768::UINTEGER AS sharedMemoryExecuted, NULL::UBIGINT AS graphNodeId, NULL::UINTEGER AS sharedMemoryLimitConfig
    FROM api JOIN kernel_kinds ON kind = (${launchOf}) % ${kinds} WHERE launch ORDER BY i`,
  NVTX_EVENTS: `SELECT start, "end", 59::UINTEGER AS eventType, NULL::UBIGINT AS rangeId, NULL::UBIGINT AS category, NULL::UINTEGER AS color,
    text, ${globalTid}::UBIGINT AS globalTid, NULL::UBIGINT AS endGlobalTid, textId::UINTEGER AS textId, 0::UBIGINT AS domainId FROM (
    SELECT s * ${step_ns} - 100 AS start, s * ${step_ns} + ${calls * call_ns + 150_000} AS "end",
      'inferscope:' || CASE WHEN s % 100 = 0 THEN 'prefill:' || s // 100 || ':0' ELSE 'decode:' || s // 100 || ':' || (s % 100 - 1) END AS text, NULL AS textId
      FROM range(${steps}) t(s)
    UNION ALL SELECT s * ${step_ns} + l * 22 * ${call_ns} + 1 + inner_ * 10, s * ${step_ns} + l * 22 * ${call_ns} + (21 - inner_ * 10) * ${call_ns}, NULL,
      ${nextId} + 2 * l + inner_ FROM range(${steps}) t(s), range(${layers}) u(l), range(2) v(inner_)) ORDER BY start, "end" DESC`,
};
const sqliteType = (type) => (type === 'VARCHAR' ? 'TEXT' : 'INTEGER');
for (const [table, sql] of Object.entries(tables))
  await db.run(`COPY (${sql}) TO '${join(parquetdir, table)}.parquet' (FORMAT parquet, COMPRESSION zstd)`);

if (!values['no-sqlite']) {
  const path = join(folder, 'synthetic.sqlite');
  rmSync(path, { force: true });
  const { default: Database } = await import('libsql');
  const out = new Database(path);
  out.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
  for (const table of Object.keys(tables)) {
    const from = `'${join(parquetdir, table)}.parquet'`;
    const columns = await rows(`DESCRIBE SELECT * FROM ${from}`);
    const defined = columns.map(([name, type]) =>
      table === 'StringIds' && name === 'id'
        ? 'id INTEGER NOT NULL PRIMARY KEY'
        : `"${name}" ${sqliteType(type)}`,
    );
    out.exec(`CREATE TABLE ${table} (${defined.join(', ')})`);
    const insert = out.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join(', ')})`);
    const result = await db.stream(`SELECT * FROM ${from}`);
    out.exec('BEGIN');
    for (;;) {
      const chunk = await result.fetchChunk();
      if (!chunk || chunk.rowCount === 0) break;
      for (const row of chunk.getRows()) insert.run(row);
    }
    out.exec('COMMIT');
  }
  out.close();
}
for (const table of ['CUPTI_ACTIVITY_KIND_KERNEL', 'CUPTI_ACTIVITY_KIND_RUNTIME', 'NVTX_EVENTS'])
  console.log(table, String((await rows(`SELECT count(*) FROM '${join(parquetdir, table)}.parquet'`))[0][0]));
