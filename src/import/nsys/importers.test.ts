import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { summary } from '../../session/test-session.js';
import { nsysParquetdirImporter, nsysRepImporter, nsysSqliteImporter } from './importers.js';
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

async function imported(path: string) {
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
    const { database, outcome } = await imported(`${fixtures}/${file}`);
    expect(outcome.clock).toEqual({
      name: 'Nsight Systems session, ns',
      resolution_ns: 1,
      error_bound_ns: 0,
    });
    // nvtx_kern_sum counts a kernel in every range around its launch, so the ranges above are walked.
    const ours = await database.query(`WITH RECURSIVE up AS (
      SELECT k.name AS kernel, k.dur_ns, k.stage_id FROM kernels k WHERE attributed_by = 'api' AND class <> 'graph'
      UNION ALL SELECT kernel, dur_ns, s.parent_id FROM up JOIN stages s USING (stage_id) WHERE s.parent_id IS NOT NULL)
    SELECT s.raw_name AS range, kernel, count(*) AS n, sum(dur_ns) AS total FROM up JOIN stages s USING (stage_id)
    GROUP BY ALL`);
    await database.close();
    const theirs = nsysStats(`${fixtures}/nsys-stats/${stats}`, 'nvtx_kern_sum')
      .filter((row) => row['Style'] === 'PushPop')
      .map((row) => ({
        range: row['NVTX Range']!.replace(/^:/, ''),
        kernel: row['Kernel Name']!,
        n: Number(row['Kern Inst']),
        total: Number(row['Total Time (ns)']),
      }));
    const key = (row: object) => JSON.stringify(row);
    // Theirs has a row for each thread.
    const summed = new Map<string, (typeof theirs)[0]>();
    for (const row of theirs) {
      const sum = summed.get(row.range + row.kernel);
      if (sum) Object.assign(sum, { n: sum.n + row.n, total: sum.total + row.total });
      else summed.set(row.range + row.kernel, row);
    }
    expect(ours.map(key).sort()).toEqual([...summed.values()].map(key).sort());
    expect(theirs.length).toBeGreaterThan(0);
  },
);
