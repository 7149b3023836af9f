import Database from 'libsql';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { summary } from '../../session/test-session.js';
import { nsysParquetdirImporter, nsysSqliteImporter } from './importers.js';
import { nsysStats } from './test-nsys-stats.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const folder = mkdtempSync(join(tmpdir(), 'inferscope-nsys-test-'));
const home = homeFolders({ INFERSCOPE_HOME: folder });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context = {
  execution_id: 'profiled',
  capture_id: 'nsys',
  host: 'h',
  zero: { realtime_ns: null, monotonic_ns: null },
};

async function importCapture(path: string) {
  const session = await createSession({ kind: 'import', label: 'nsys', home });
  const importer = path.endsWith('.sqlite') ? nsysSqliteImporter : nsysParquetdirImporter;
  const outcome = await importer.load(path, session, context);
  const { id } = await session.finish(summary);
  const database = await (await openSession(id, home)).connect();
  return { outcome, database };
}

const captures = [
  ['tiny-nsys.sqlite', 'tiny-nsys'],
  ['tiny-nsys.parquetdir', 'tiny-nsys'],
  ['tiny-graph.sqlite', 'tiny-graph'],
  ['tiny-graph-opaque.sqlite', 'tiny-graph-opaque'],
  ['tiny-whole.sqlite', 'tiny-whole'],
] as const;

test.each(captures)(
  'a session of %s has the kernels of nsys stats in their NVTX ranges',
  async (file, stats) => {
    const { database, outcome } = await importCapture(`${fixtures}/${file}`);
    expect(outcome.clock).toEqual({
      name: 'Nsight Systems session, ns',
      resolution_ns: 1,
      error_bound_ns: 0,
    });
    // nvtx_kern_sum counts a kernel in every range around its launch, so all enclosing ranges are visited.
    const kernels = await database.query(`WITH RECURSIVE enclosing AS (
      SELECT k.name AS kernel, k.dur_ns, k.stage_id FROM kernels k WHERE attributed_by = 'api' AND class <> 'graph'
      UNION ALL SELECT kernel, dur_ns, s.parent_id FROM enclosing JOIN stages s USING (stage_id) WHERE s.parent_id IS NOT NULL)
    SELECT s.raw_name AS range, kernel, count(*) AS n, sum(dur_ns) AS total FROM enclosing JOIN stages s USING (stage_id)
    GROUP BY ALL`);
    await database.close();
    const nsysRows = nsysStats(`${fixtures}/nsys-stats/${stats}`, 'nvtx_kern_sum')
      .filter((row) => row['Style'] === 'PushPop')
      .map((row) => ({
        range: row['NVTX Range']!.replace(/^:/, ''),
        kernel: row['Kernel Name']!,
        n: Number(row['Kern Inst']),
        total: Number(row['Total Time (ns)']),
      }));
    const key = (row: object) => JSON.stringify(row);
    // nsys has a row per thread.
    const sums = new Map<string, (typeof nsysRows)[0]>();
    for (const row of nsysRows) {
      const sum = sums.get(row.range + row.kernel);
      if (sum) Object.assign(sum, { n: sum.n + row.n, total: sum.total + row.total });
      else sums.set(row.range + row.kernel, row);
    }
    expect(kernels.map(key).sort()).toEqual([...sums.values()].map(key).sort());
    expect(nsysRows.length).toBeGreaterThan(0);
  },
);

test('facts: tool, machine and command, but no environment', async () => {
  const { workbench, abandon } = await createSession({ kind: 'import', label: 'facts', home });
  const factsOfBoth = [
    await nsysSqliteImporter.facts(`${fixtures}/tiny-nsys.sqlite`),
    await nsysParquetdirImporter.facts(`${fixtures}/tiny-nsys.parquetdir`, workbench),
  ];
  await abandon();
  for (const facts of factsOfBoth) {
    expect(facts).toEqual({
      tool: { name: 'nsys', version: '2025.3.2.0' },
      realtime_zero_ns: 1795237080391862835n,
      command: ['python3', 'nsys', '1', '4'],
      hardware: {
        gpu_name: 'NVIDIA H200',
        gpu_count: 1,
        gpu_memory_bytes: 150109880320,
        gpu_memory_bandwidth_bytes_per_s: 4814304000000,
        gpu_sm_count: 132,
        gpu_compute_capability: '9.0',
        gpu_clock_hz: 1980000000,
        gpu_l2_cache_bytes: expect.any(Number),
      },
      software: {
        nvidia_driver: '580.159.04',
        cuda_driver: '13.0',
        os: 'Ubuntu 24.04.3 LTS',
        nsys_export_schema: '3.20.3',
      },
      purpose: 'profiled',
    });
  }
});

test('a report without kernels has an issue; one with kernels or whole graphs has none', async () => {
  const source = `${fixtures}/tiny-nsys.parquetdir`;
  const bare = join(folder, 'bare.parquetdir');
  cpSync(source, bare, { recursive: true, filter: (path) => !/KIND_(KERNEL|GRAPH_TRACE)/.test(path) });
  const issueCodes = async (path: string) => {
    const { outcome, database } = await importCapture(path);
    await database.close();
    return outcome.issues.map(({ code }) => code);
  };
  expect(await issueCodes(bare)).toContain('no_kernels');
  expect(await issueCodes(`${fixtures}/tiny-graph-opaque.sqlite`)).not.toContain('no_kernels');
});

test('a token in the environment that nsys stored is nowhere in the session', async () => {
  const path = join(folder, 'secret.sqlite');
  copyFileSync(`${fixtures}/tiny-nsys.sqlite`, path);
  const token = 'hf_plantedPlantedPlanted';
  const database = new Database(path);
  // As in an unscrubbed report: capture options, system state, and one value of StringIds with NUL between its parts.
  // The kernel names refer to the latter, which no capture does.
  database.exec(`INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'HF_TOKEN=${token}');
    INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'x', 'Environment', 1, 'HF_TOKEN=${token}');
    INSERT INTO StringIds VALUES (70000, 'PATH=/bin' || char(0) || 'HF_TOKEN=${token}'), (70001, 'HF_TOKEN=${token}');
    UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 70000 WHERE rowid < 5;`);
  database.close();
  const facts = await nsysSqliteImporter.facts(path);
  expect(
    JSON.stringify(facts, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  ).not.toContain(token);
  const session = await createSession({ kind: 'import', label: 'secret', home });
  await nsysSqliteImporter.load(path, session, context);
  const names = await session.workbench.query(
    "SELECT table_name FROM duckdb_tables() WHERE table_name ~ '^(nsys|trace|attr)_'",
  );
  expect(names).toEqual([]);
  const { folder: savedFolder, id } = await session.finish(summary);
  const opened = await (await openSession(id, home)).connect();
  const leaks = await opened.query(`SELECT count(*) AS n FROM kernels WHERE name LIKE '%${token}%'`);
  const [named] = await opened.query("SELECT count(*) AS n FROM kernels WHERE name LIKE '%PATH=%'");
  await opened.close();
  expect(leaks).toEqual([{ n: 0 }]);
  expect(named).toEqual({ n: 0 });
  for (const entry of readdirSync(savedFolder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) expect(readFileSync(join(entry.parentPath, entry.name)).includes(token)).toBe(false);
});
