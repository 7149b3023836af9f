import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { packageRoot } from '../../model/installation.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { importArchive } from '../session-archive.js';

afterEach(() => vi.unstubAllEnvs());

// Rank 1 computes each layer four times as often; the origin is described next to the fixture.
test('two H100 under torchrun, three executions: the slow rank comes first, with all times on one clock', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const { id } = await importArchive(
    join(packageRoot(), 'test/fixtures/joined-2h100/session.inferscope.tar.gz'),
  );
  const session = await openSession(id);
  expect(
    session.manifest.executions.map((execution) => [execution.execution_id, execution.exit_code]),
  ).toEqual([
    ['clean', 0],
    ['nsys', 0],
    ['torch', 0],
  ]);
  const { findings, stages } = (await explainSession(session)).data;
  expect(findings[0]).toMatchObject({ rule: 'rank_stragglers' });
  expect(findings[0]!.title).toContain('rank 1 (GPU 1)');
  // 96 GEMMs of 8 layers, of which rank 1 does four times as many: half of the surplus can move to rank 0.
  expect(stages.map(({ kind }) => kind)).toContain('prefill');
  const { job } = (await analyzeCollectives(session)).data;
  expect(job).toMatchObject({
    execution: 'torch',
    world_size: 2,
    missing: [],
    ranks: [{ rank: 0 }, { rank: 1 }],
  });
  // 8 all-reduces in each of 12 steps, and the barrier at the end.
  const { ranks } = job!;
  expect(ranks.map(({ clock }) => clock!.collectives)).toEqual([0, expect.any(Number)]);
  expect(ranks[1]!.clock!.bound_ns).toBeLessThan(1_000_000);
  expect(ranks.find(({ late_cause }) => late_cause !== null)?.rank).toBe(1);
  // The bars come from nsys, which recorded no collective calls here: rank 0 waits in its kernels for those of rank 1, which computes three
  // more GEMMs.
  const prefill = (await explainSession(session, { rank: 0 })).data.stages.find(
    ({ kind }) => kind === 'prefill',
  );
  const bar = (id: string) => prefill!.bars.find((candidate) => candidate.id === id)?.ms ?? 0;
  const database = await session.connect();
  const kernels = (rank: number) =>
    `(SELECT *, row_number() OVER (ORDER BY start_ns) AS nth FROM kernels WHERE execution_id = 'nsys' AND rank = ${rank} AND name LIKE '%AllReduce%')`;
  const [shortest] = await database.query<{ ms: number }>(
    `SELECT sum(least(a.dur_ns, b.dur_ns)) / 1e6 / ${prefill!.instances} AS ms FROM ${kernels(0)} a JOIN ${kernels(1)} b USING (nth)
     JOIN stages p ON p.capture_id = a.capture_id AND p.kind = 'prefill' AND NOT coalesce(p.warmup, false) AND a.start_ns BETWEEN p.start_ns AND coalesce(p.device_end_ns, p.end_ns)`,
  );
  await database.close();
  expect(bar('exposed_comm.wire')).toBeCloseTo(shortest!.ms, 2);
  expect(bar('exposed_comm.skew')).toBeGreaterThan(2 * bar('exposed_comm.wire'));
});
