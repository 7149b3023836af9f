import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rankFilesSchema } from '../../model/ranks.js';
import {
  endJitterNs,
  type PlantedRun,
  playRanks,
  type RankEvents,
  writeKinetoRanks,
} from '../../record/ranks/test-ranks.js';
import { writeNsysRanks } from '../../record/ranks/test-nsys-ranks.js';
import { homeFolders } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { importPart } from './import-part.js';
import { importRanks } from './import-ranks.js';
import { type RanksOptions, runImport } from '../import-run.js';

let folder: string;
beforeEach(() => {
  folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
});
afterEach(() => vi.unstubAllEnvs());

const options: RanksOptions = { tag: [], raw: true, quiet: true, jobs: 2 };
const traces = () => join(folder, 'traces');
const importAllTraces = (more: Partial<RanksOptions> = {}, signal = new AbortController().signal) =>
  importRanks([`${traces()}/**`], { ...options, ...more }, signal, importPart);

async function importPlanted(planted: PlantedRun): Promise<{ session: Session; events: RankEvents[] }> {
  const events = writeKinetoRanks(traces(), planted);
  return { session: await openSession(await importAllTraces()), events };
}

const filesOf = (session: Session) =>
  rankFilesSchema.parse(
    JSON.parse(readFileSync(join(session.folder, 'artifacts/session/ranks.json'), 'utf8')),
  );

test('captures of different steps are reported, with the ranks that start last and stop first', async () => {
  const apart = [
    { rank: 1, without: 'last', steps: 3 },
    { rank: 2, without: 'first', steps: 4 },
  ] as const;
  const { session } = await importPlanted({ seed: 9, ranks: 4, steps: 12, window: apart });
  const issue = session.issues.find(({ code }) => code === 'rank_windows_apart')!;
  expect(issue.text).toContain('rank 2 starts last, rank 1 ends first');
  // 5 of 12 steps are in all captures; the shortest capture has 8.
  const [, common, shortest] = /have ([\d.]+) ms in common, the shortest lasts ([\d.]+) ms/.exec(issue.text)!;
  expect(Number(common) / Number(shortest)).toBeCloseTo(5 / 8, 1);
  const aligned = await importPlanted({ seed: 9, ranks: 4, steps: 12 });
  expect(aligned.session.issues.map(({ code }) => code)).not.toContain('rank_windows_apart');
}, 120_000);

test('planted clock offsets and drifts are found within the stated bound', async () => {
  const { session, events } = await importPlanted({ seed: 7, ranks: 4, steps: 20, driftPpm: 40 });
  const { clocks, missing, world_size } = filesOf(session);
  expect([missing, world_size]).toEqual([[], 4]);
  const end = Math.max(...events[0]!.steps.map((step) => step.end));
  for (const { rank, against, offset_ns, drift_ppm, bound_ns } of clocks) {
    const { clock } = events[rank]!;
    expect(against).toBe(0);
    // Offsets are of the middle of the capture, compared with true times minus the constant of all clocks.
    const middle = (end - 20_000_000) / 2;
    const expected = clock.offset_ns + 1e-6 * clock.drift_ppm * middle;
    expect(Math.abs(offset_ns! - expected)).toBeLessThan(rank === 0 ? 1 : 2 * endJitterNs);
    expect(Math.abs(offset_ns! - expected)).toBeLessThanOrEqual(bound_ns!);
    expect(bound_ns).toBeLessThan(60_000);
    if (drift_ppm !== 0)
      expect(Math.abs(drift_ppm! - clock.drift_ppm)).toBeLessThan(0.3 * Math.abs(clock.drift_ppm) + 5);
  }
  const database = await session.connect();
  const ends = await database.query<{ spread: number }>(
    'SELECT max(start_ns + dur_ns) - min(start_ns + dur_ns) AS spread FROM collectives GROUP BY communicator, sequence',
  );
  expect(Math.max(...ends.map(({ spread }) => spread))).toBeLessThan(3 * endJitterNs);
  expect(
    await database.query('SELECT DISTINCT communicator AS c, ranks FROM collectives ORDER BY 1'),
  ).toEqual([
    { c: 'ep[0-3]', ranks: 4 },
    { c: 'tp0[0-1]', ranks: 2 },
    { c: 'tp1[2-3]', ranks: 2 },
  ]);
  await database.close();
});

test('a rank has the same rows as when it is imported alone, only shifted', async () => {
  const { session } = await importPlanted({ seed: 8, ranks: 2 });
  const alone = await openSession(
    await runImport([join(traces(), 'trace_rank0001.json.gz')], options, new AbortController().signal),
  );
  const sums = async (stored: Session, where: string) => {
    const database = await stored.connect();
    const rows = await database.query(
      `SELECT (SELECT count(*) FROM kernels ${where}) AS kernels, (SELECT sum(dur_ns) FROM kernels ${where}) AS dur, (SELECT sum(exclusive_ns) FROM kernels ${where}) AS exclusive,
         (SELECT sum(hash(name, class, dur_ns, stage_id, grid)) FROM kernels ${where})::VARCHAR AS hashed, (SELECT sum(hash(cause, dur_ns)) FROM gaps ${where})::VARCHAR AS gaps,
         (SELECT count(*) FROM api_calls ${where}) AS calls, (SELECT sum(end_ns - start_ns) FROM stages ${where}) AS stages,
         (SELECT count(DISTINCT k.start_ns - s.start_ns) FROM kernels k JOIN stages s USING (capture_id, stage_id) ${where.replace('rank', 'k.rank')}) AS places`,
    );
    await database.close();
    return rows;
  };
  expect(await sums(session, 'WHERE rank = 1')).toEqual(await sums(alone, 'WHERE rank = 1'));
  expect(session.manifest.captures.map(({ capture_id }) => capture_id)).toEqual(['rank-0', 'rank-1']);
  // A session of one rank has no collectives.
  expect([alone.manifest.subjects, alone.manifest.tables['collectives']]).toEqual([['timeline'], undefined]);
  expect(session.manifest.subjects).toEqual(['timeline', 'collectives']);
});

test('missing, truncated, duplicate and other files are reported; the rest is imported and can be resumed', async () => {
  const planted = { seed: 9, ranks: 5, steps: 3, missing: [1], truncated: [3] };
  writeKinetoRanks(traces(), planted);
  writeFileSync(join(traces(), 'config.json'), '{"a": 1}');
  copyFileSync(join(traces(), 'trace_rank0002.json.gz'), join(traces(), 'zz-copy.json.gz'));
  const session = await openSession(await importAllTraces());
  const rankFiles = filesOf(session);
  expect(rankFiles.files.map(({ file, outcome, rank }) => [file, outcome, rank])).toEqual([
    ['config.json', 'skipped', null],
    ['trace_rank0000.json.gz', 'imported', 0],
    ['trace_rank0002.json.gz', 'imported', 2],
    ['trace_rank0003.json.gz', 'failed', 3],
    ['trace_rank0004.json.gz', 'imported', 4],
    ['zz-copy.json.gz', 'failed', null],
  ]);
  expect(rankFiles.missing).toEqual([1, 3]);
  const texts = session.issues.map(({ code, text }) => `${code} ${text}`);
  expect(texts).toContainEqual(expect.stringMatching(/rank_unreadable Rank 3: trace_rank0003.*cut off/));
  expect(texts).toContainEqual(
    expect.stringMatching(/rank_unreadable zz-copy.*Rank 2 was imported from trace_rank0002/),
  );
  expect(texts).toContainEqual(expect.stringMatching(/rank_missing No file of rank 1 was found/));

  // After a repair only missing ranks are imported again.
  writeKinetoRanks(traces(), { ...planted, truncated: [] });
  const again: string[] = [];
  const id = await importRanks(
    [`${traces()}/**`],
    { ...options, resume: true },
    new AbortController().signal,
    (order) => {
      again.push(order.file);
      return importPart(order);
    },
  );
  expect(filesOf(await openSession(id)).missing).toEqual([1]);
  expect(again.map((path) => path.slice(traces().length + 1))).toContain('trace_rank0003.json.gz');
});

test('an interrupt keeps finished ranks, and --resume imports the rest', async () => {
  writeKinetoRanks(traces(), { seed: 10, ranks: 4, steps: 2 });
  const stop = new AbortController();
  let startedImports = 0;
  const first = importRanks([traces()], { ...options, jobs: 1 }, stop.signal, async (order) => {
    if (++startedImports === 3) stop.abort();
    else await importPart(order);
  });
  await expect(first).rejects.toMatchObject({
    code: 'E_INTERRUPTED',
    parts: { what: 'stopped after 2 of 4 files', fix: expect.stringContaining('--ranks --resume') },
  });
  expect(readdirSync(homeFolders().sessions)).toEqual([]);
  const again: string[] = [];
  const id = await importRanks(
    [traces()],
    { ...options, resume: true },
    new AbortController().signal,
    (order) => {
      again.push(order.file);
      return importPart(order);
    },
  );
  expect(again).toHaveLength(2);
  expect((await openSession(id)).manifest.captures).toHaveLength(4);
  expect(readdirSync(join(homeFolders().cache, 'ranks'))).toEqual([]);
});

test('without a readable file nothing is saved', async () => {
  await expect(importAllTraces()).rejects.toMatchObject({ code: 'E_USAGE' });
  mkdirSync(traces(), { recursive: true });
  writeFileSync(join(traces(), 'rank0.json'), '');
  await expect(importAllTraces()).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  rmSync(traces(), { recursive: true });
  expect(readdirSync(homeFolders(process.env).sessions)).toEqual([]);
});

test('nsys reports: ranks from the environment, clocks of two ranks aligned on kernels of the same name', async () => {
  const events = playRanks({ seed: 11, ranks: 2, steps: 6 });
  // The file names contradict the environment, which takes precedence.
  for (const rankEvents of events)
    await writeNsysRanks(join(traces(), `rank${1 - rankEvents.rank}.parquetdir`), [rankEvents], 2);
  const session = await openSession(await importAllTraces());
  const { clocks, files, missing } = filesOf(session);
  expect(missing).toEqual([]);
  expect(files.map(({ file, rank, rank_source: source }) => [file, rank, source])).toEqual([
    ['rank0.parquetdir', 1, 'trace'],
    ['rank1.parquetdir', 0, 'trace'],
  ]);
  const { clock, steps } = events[1]!;
  const middle = (steps.at(-1)!.end - 20_000_000 - clock.offset_ns) / 2;
  const expected = clock.offset_ns + 1e-6 * clock.drift_ppm * middle;
  expect(clocks[1]!.against).toBe(0);
  expect(Math.abs(clocks[1]!.offset_ns! - expected)).toBeLessThanOrEqual(clocks[1]!.bound_ns!);
  const database = await session.connect();
  const [row] = await database.query('SELECT count(*) AS n, count(DISTINCT rank) AS ranks FROM collectives');
  expect(row).toEqual({ n: 2 * 6 * 4 * 3, ranks: 2 });
  await database.close();
});

test('reports of whole hosts are merged; with more than two ranks, names alone align no clocks', async () => {
  const events = playRanks({ seed: 12, ranks: 4, steps: 2 });
  await writeNsysRanks(join(traces(), 'host-a.parquetdir'), events.slice(0, 2), 4);
  await writeNsysRanks(join(traces(), 'host-b.parquetdir'), events.slice(2), 4);
  const session = await openSession(await importAllTraces());
  const { clocks, files, missing } = filesOf(session);
  expect([missing, files.map(({ rank }) => rank)]).toEqual([[], [0, 2]]);
  expect(clocks.map(({ bound_ns }) => bound_ns)).toEqual([0, null]);
  expect(session.issues.map(({ code }) => code)).toContain('rank_clock_unaligned');
  const database = await session.connect();
  expect(await database.query('SELECT DISTINCT rank FROM kernels ORDER BY 1')).toEqual(
    [0, 1, 2, 3].map((rank) => ({ rank })),
  );
  await database.close();
});
