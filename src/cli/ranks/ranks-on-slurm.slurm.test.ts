import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import process from 'node:process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { packageRoot } from '../../model/installation.js';
import { rankFilesSchema } from '../../model/ranks.js';
import { writeKinetoRanks } from '../../record/ranks/test-ranks.js';
import { homeFolders } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { importRanks } from './import-ranks.js';
import type { RanksOptions } from '../import-run.js';

// npm run test:slurm starts a Slurm and sets SLURM_CONF; tasks run dist/rank-child.js.
let folder = '';
beforeEach(() => {
  folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
});
afterEach(() => vi.unstubAllEnvs());

const traces = () => join(folder, 'traces');
const options: RanksOptions = { tag: [], raw: true, quiet: true };
const run = (more: Partial<RanksOptions>, signal = new AbortController().signal) =>
  importRanks([traces()], { ...options, ...more }, signal);

/** Ids of queued jobs and tasks by their name. */
const queued = (name: string, ...more: string[]): string[] =>
  execFileSync('squeue', ['--noheader', '--array', '--name', name, '--format', '%i', ...more], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter(Boolean);

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 600) throw new Error('It did not happen in a minute.');
    await sleep(100);
  }
}

/** Checksums of a session's tables by path. */
const tablesOf = ({ folder: sessionFolder }: Session): Record<string, string> =>
  Object.fromEntries(
    readdirSync(join(sessionFolder, 'tables'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.parquet'))
      .map((path) => [
        path,
        createHash('sha256')
          .update(readFileSync(join(sessionFolder, 'tables', path)))
          .digest('hex'),
      ]),
  );
const filesOf = ({ folder: sessionFolder }: Session) =>
  rankFilesSchema.parse(
    JSON.parse(readFileSync(join(sessionFolder, 'artifacts/session/ranks.json'), 'utf8')),
  );

test('Slurm tasks write the same tables as local processes; an unreadable file is reported and does not stop the rest', async () => {
  // One at a time, five files are four tasks: the first imports ranks 0 and 5.
  writeKinetoRanks(traces(), { seed: 3, ranks: 6, steps: 4, truncated: [0], missing: [4] });
  const onSlurm = await openSession(
    await run({
      on: 'slurm',
      jobs: 1,
      name: 'there',
      sbatch: `--time=5 --comment='two words'`,
      sbatchMerge: '--time=6',
    }),
  );
  const local = await openSession(await run({ name: 'here' }));
  expect(tablesOf(onSlurm)).toEqual(tablesOf(local));
  expect(Object.keys(tablesOf(onSlurm)).length).toBeGreaterThan(0);
  expect(filesOf(onSlurm)).toEqual(filesOf(local));
  expect(
    filesOf(onSlurm)
      .files.filter(({ outcome }) => outcome === 'failed')
      .map(({ rank }) => rank),
  ).toEqual([0]);
  expect(filesOf(onSlurm).missing).toContain(4);
});

test('a canceled task and a requeued task are run again', async () => {
  writeKinetoRanks(traces(), { seed: 4, ranks: 4, steps: 2 });
  // One task at a time, so that the last ones are still queued.
  const importing = run({ on: 'slurm', jobs: 1 });
  await until(() => queued('inferscope-rank').some((id) => id.endsWith('_3')));
  const last = queued('inferscope-rank').find((id) => id.endsWith('_3'))!;
  execFileSync('scancel', [last]);
  const [running] = queued('inferscope-rank', '--states', 'RUNNING');
  if (running) {
    execFileSync('scontrol', ['requeue', running]);
    await until(() => queued('inferscope-rank', '--states', 'PENDING').includes(running));
    // A requeued task would wait two minutes.
    execFileSync('scontrol', ['update', `JobId=${running}`, 'StartTime=now']);
  }
  const session = await openSession(await importing);
  expect(session.manifest.captures).toHaveLength(4);
  expect(filesOf(session).files.every(({ outcome }) => outcome === 'imported')).toBe(true);
});

test('a requeued task of several files imports the remaining ones, and a killed import does not stop the others', async () => {
  writeKinetoRanks(traces(), { seed: 8, ranks: 12, steps: 2 });
  const importing = run({ on: 'slurm', jobs: 1 });
  const ranks = join(homeFolders().cache, 'ranks');
  /** Result of the nth file. */
  const part = (n: number) =>
    join(
      ranks,
      readdirSync(ranks).find((name) => !name.endsWith('-slurm'))!,
      `p${n}`,
      'part.json',
    );
  await until(() => queued('inferscope-merge').length > 0 && existsSync(part(1)));
  const [task] = queued('inferscope-rank', '--states', 'RUNNING');
  expect([task, queued('inferscope-rank').length]).toEqual([expect.stringMatching(/_0$/), 4]);
  execFileSync('scontrol', ['requeue', task!]);
  await until(() => queued('inferscope-rank', '--states', 'PENDING').includes(task!));
  execFileSync('scontrol', ['update', `JobId=${task}`, 'StartTime=now']);
  const { ino } = statSync(part(1));
  await until(() => queued('inferscope-rank', '--states', 'RUNNING').includes(task!));
  await until(() => spawnSync('pkill', ['--signal', 'KILL', '--full', dirname(part(5))]).status === 0);
  await until(() => existsSync(part(9)));
  // Only the task has run: the merge job waits.
  expect(queued('inferscope-merge', '--states', 'PENDING')).toHaveLength(1);
  expect([statSync(part(1)).ino, existsSync(part(5))]).toEqual([ino, false]);
  const session = await openSession(await importing);
  expect(session.manifest.captures).toHaveLength(12);
});

test('Ctrl-C cancels the submitted tasks, and --resume imports the rest, locally or on Slurm', async () => {
  writeKinetoRanks(traces(), { seed: 5, ranks: 4, steps: 2 });
  const stop = new AbortController();
  const importing = run({ on: 'slurm', jobs: 1 }, stop.signal);
  await until(() => queued('inferscope-merge').length > 0);
  stop.abort();
  await expect(importing).rejects.toMatchObject({
    code: 'E_INTERRUPTED',
    parts: { fix: expect.stringContaining('--ranks --resume') },
  });
  await until(() => queued('inferscope-rank').length + queued('inferscope-merge').length === 0);
  expect(readdirSync(homeFolders().sessions)).toEqual([]);
  const session = await openSession(await run({ on: 'slurm', resume: true }));
  expect(session.manifest.captures).toHaveLength(4);
  expect(readdirSync(join(homeFolders().cache, 'ranks'))).toEqual([]);
});

test('an error of sbatch is printed; nothing stays queued', async () => {
  writeKinetoRanks(traces(), { seed: 6, ranks: 2, steps: 1 });
  await expect(run({ on: 'slurm', sbatch: '--partition=nowhere' })).rejects.toMatchObject({
    code: 'E_TOOL_FAILED',
    parts: { why: expect.stringMatching(/partition/i) },
  });
  expect(queued('inferscope-rank')).toEqual([]);
});

test('if no file can be read, the merge job reports the same error as a local import', async () => {
  writeKinetoRanks(traces(), { seed: 7, ranks: 2, steps: 1, truncated: [0, 1] });
  const failure = { code: 'E_TRACE_FILE', parts: { what: 'none of 2 files could be imported' } };
  await expect(run({ on: 'slurm' })).rejects.toMatchObject(failure);
  await expect(run({})).rejects.toMatchObject(failure);
});

test('srun: each task records its rank, the last one joins them; two steps are two sessions', async () => {
  const program = [process.execPath, '-e', 'setTimeout(() => {}, 50)'];
  const cli = join(packageRoot(), 'dist/cli.js');
  const step = (name: string) =>
    execFileSync(
      'srun',
      [
        '--ntasks=2',
        process.execPath,
        cli,
        'run',
        '--evaluator',
        'none',
        '--no-analyze',
        '--name',
        name,
        '--',
        ...program,
      ],
      { encoding: 'utf8', stdio: 'pipe' },
    );
  step('first');
  step('second');
  for (const name of ['first', 'second']) {
    const session = await openSession(name);
    expect(session.manifest).toMatchObject({ kind: 'run', status: 'complete' });
    expect(filesOf(session)).toMatchObject({ world_size: 2, missing: [], files: [{ rank: 0 }, { rank: 1 }] });
  }
  expect(readdirSync(homeFolders().sessions).filter((name) => !name.startsWith('.'))).toHaveLength(2);
});
