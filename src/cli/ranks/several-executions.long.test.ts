import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import {
  kinetoFile,
  kinetoHead,
  kinetoRows,
  playRanks,
  type RankEvents,
  writeKinetoRanks,
} from '../../record/ranks/test-ranks.js';
import { writeNsysRanks } from '../../record/ranks/test-nsys-ranks.js';
import { partHome, writePart } from '../../record/ranks/part.js';
import { recordSession } from '../../record/record-session.js';
import { rankFolder } from '../../record/ranks/job-folder.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { collectiveBlocks } from '../../views/collectives.js';
import { importCaptures } from '../import-captures.js';
import { runImport } from '../import-run.js';
import { joinJob } from './join-job.js';

afterEach(() => vi.unstubAllEnvs());

async function collectivesOf(id: string) {
  const session = await openSession(id);
  const database = await session.connect();
  const rows = await database.query<{ execution_id: string; n: number }>(
    'SELECT execution_id, count(*) AS n FROM collectives GROUP BY 1 ORDER BY 1',
  );
  await database.close();
  return { rows, document: await analyzeCollectives(session) };
}

const options = { tag: [], raw: false, quiet: true };
const { signal } = new AbortController();

test('nsys and torch in one session: each execution has its collectives, and tables name the execution', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const nsys = 'test/fixtures/below-2h100/torchrun.sqlite';
  const torch = [0, 1].map((rank) => `test/fixtures/nccl-2h100/rank${rank}.json.gz`);
  const [alone] = (await collectivesOf(await runImport([nsys], options, signal))).rows;
  const [traced] = (await collectivesOf(await runImport(torch, options, signal))).rows;
  const { rows, document } = await collectivesOf(await runImport([nsys, ...torch], options, signal));
  expect(rows).toEqual([alone, traced]);
  const { groups, job, communicators, recorded } = document.data;
  expect(recorded).toBe(alone!.n + traced!.n);
  const executions = [alone!.execution_id, traced!.execution_id];
  for (const execution of executions) {
    const sum = groups
      .filter((group) => group.execution === execution)
      .reduce((total, group) => total + group.recorded, 0);
    expect(sum).toBe(rows.find((row) => row.execution_id === execution)!.n);
  }
  expect(new Set(communicators.map(({ execution }) => execution))).toEqual(new Set(executions));
  expect(executions).toContain(job!.execution);
  const tables = collectiveBlocks(document).flatMap((block) => (block.type === 'table' ? [block] : []));
  expect(tables[0]!.title).toContain(`execution ${job!.execution}`);
  const withExecutions = tables.filter(({ columns }) => columns.some(({ id }) => id === 'execution'));
  expect(withExecutions).toHaveLength(2);
});

test('ranks that recorded several executions are joined with the collectives of each', async () => {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const planted = { seed: 1, ranks: 2, steps: 3, layers: 2 };
  writeKinetoRanks(join(folder, 'torch'), planted);
  const job = join(folder, 'job');
  for (const events of playRanks(planted)) {
    const { rank } = events;
    const nsys = join(folder, `rank${rank}_parquetdir`);
    await writeNsysRanks(nsys, [events], 2);
    const place = rankFolder(job, rank);
    mkdirSync(place, { recursive: true });
    const plan = { label: 'rank', kind: 'run', doing: 'save the rank', home: partHome(place) };
    const { id, ...part } = await recordSession(plan, async ({ files }) => {
      const { captures, executions, software, zeroRealtimeNs, calls } = await importCaptures(
        files,
        [{ path: kinetoFile(join(folder, 'torch'), rank) }, { path: nsys }],
        { keepRaw: false, part: true },
      );
      const result = { software, zero_ns: String(zeroRealtimeNs), ...calls! };
      return { title: 'rank', status: 'complete', captures, executions, software, result };
    });
    writePart(place, { id, rank, world_size: 2, ...part });
  }
  const { rows, document } = await collectivesOf((await joinJob(job, { name: undefined, tags: [] })).id);
  // 3 collectives per layer; the generated nsys reports name no calls.
  expect(rows.map(({ n }) => n)).toEqual([2 * 3 * 2 * 3, 2 * 3 * 2 * 3]);
  const { job: ranks } = document.data;
  expect(ranks).toMatchObject({ execution: 'torch-profiler', ranks: [{ steps: 3 }, { steps: 3 }] });
  expect(ranks!.ranks[0]!.clock!.collectives).toBe(0);
  expect(ranks!.ranks[1]!.clock!.collectives).toBeGreaterThan(0);
});

test("torch's trace of one process that drives two GPUs has a rank for each", async () => {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const [first, second] = playRanks({ seed: 2, ranks: 2, steps: 3, layers: 2, offsetNs: 0, driftPpm: 0 });
  // Without a process group kernels name no call; ranges are those of the first rank.
  const withoutCalls = ({ kernels, ...events }: RankEvents) => ({
    ...events,
    kernels: kernels.map(({ name, start, dur, stream }) => ({ name, start, dur, stream })),
  });
  const own = kinetoRows(withoutCalls(first!));
  const other = kinetoRows({ ...withoutCalls(second!), steps: [] }, { kernels: 10_000, steps: 0 });
  const traceEvents = [
    ...own,
    ...other.map((row) =>
      (row as { cat: string }).cat === 'kernel' ? row : { ...row, pid: 1000, tid: 1001 },
    ),
  ];
  const path = join(folder, 'trace.json');
  writeFileSync(path, JSON.stringify({ ...kinetoHead(0, 2), distributedInfo: undefined, traceEvents }));
  const { rows, document } = await collectivesOf(await runImport([path], options, signal));
  expect(rows.map(({ n }) => n)).toEqual([2 * 3 * 2 * 3]);
  expect(document.data.job).toMatchObject({ world_size: 2, ranks: [{ rank: 0 }, { rank: 1 }] });
});
