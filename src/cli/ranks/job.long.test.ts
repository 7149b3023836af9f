import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { packageRoot } from '../../model/installation.js';
import { rankFilesSchema } from '../../model/ranks.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';

let folder = '';
beforeEach(() => {
  folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
});
afterEach(() => vi.unstubAllEnvs());

const sessions = () => readdirSync(homeFolders().sessions).filter((name) => !name.startsWith('.'));
const jobs = () => join(homeFolders().root, 'jobs');

async function cli(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [join(packageRoot(), 'dist/cli.js'), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const code = new Promise<number | null>((resolve) => void child.on('close', resolve));
  return { stdout: await text(child.stdout), stderr: await text(child.stderr), code: await code };
}

/** Runs `run` as torchrun starts it in each of two processes; the program writes its start time. */
const runRank = (
  index: number,
  options: readonly string[] = [],
  program = '',
  env: Record<string, string> = {
    RANK: `${index}`,
    WORLD_SIZE: '2',
    MASTER_ADDR: 'localhost',
    MASTER_PORT: '29511',
  },
) =>
  cli(
    [
      'run',
      '--evaluator',
      'none',
      '--no-analyze',
      ...options,
      '--',
      process.execPath,
      '-e',
      `require('fs').appendFileSync(${JSON.stringify(join(folder, `began-${index}`))}, process.hrtime.bigint() + ' ' + process.env.MASTER_PORT + '\\n');${program}`,
    ],
    env,
  );

async function joinedSession(id: string) {
  const session = await openSession(id);
  const ranks = rankFilesSchema.parse(
    JSON.parse(readFileSync(join(session.folder, 'artifacts/session/ranks.json'), 'utf8')),
  );
  return { ...session.manifest, ranks, issues: session.issues.map(({ code }) => code) };
}

test('the ranks of a job become one session, which the last one writes', async () => {
  const [first, second] = await Promise.all([runRank(0, ['--name', 'both']), runRank(1, ['--name', 'both'])]);
  expect([first.code, second.code]).toEqual([0, 0]);
  expect(sessions()).toHaveLength(1);
  const session = await joinedSession('both');
  expect(session).toMatchObject({ kind: 'run', status: 'complete' });
  expect(session.executions).toMatchObject([{ execution_id: 'clean', exit_code: 0 }]);
  expect(session.ranks).toMatchObject({ world_size: 2, missing: [] });
  // Without timelines nothing compares the clocks of ranks.
  expect(session.issues).not.toContain('rank_clock_unaligned');
  expect(session.ranks.files.map((file) => [file.rank, file.rank_source])).toEqual([
    [0, 'launcher'],
    [1, 'launcher'],
  ]);
  expect(session.captures.map(({ capture_id }) => capture_id)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^rank-0/), expect.stringMatching(/^rank-1/)]),
  );
  expect(readdirSync(jobs())).toEqual([]);
});

test('ranks of MPICH on one host find each other by the process that started them; across hosts they need a name', async () => {
  const mpich = (index: number, here = '2') => ({
    PMI_RANK: `${index}`,
    PMI_SIZE: '2',
    MPI_LOCALRANKID: `${index}`,
    MPI_LOCALNRANKS: here,
  });
  const name = ['--name', 'mpich'];
  const both = await Promise.all([runRank(0, name, '', mpich(0)), runRank(1, name, '', mpich(1))]);
  expect(both.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual([
    [0, ''],
    [0, ''],
  ]);
  expect((await joinedSession('mpich')).ranks).toMatchObject({ world_size: 2, missing: [] });
  const elsewhere = await runRank(0, [], '', mpich(0, '1'));
  expect(elsewhere.code).toBe(2);
  expect(elsewhere.stderr).toContain('--job');
});

test('a rank exits as its program does; its exit code is saved and printed by its own run', async () => {
  const [first, second] = await Promise.all([runRank(0), runRank(1, [], 'process.exit(3)')]);
  expect([first.code, second.code]).toEqual([0, 3]);
  expect(second.stderr).toContain('E_WORKLOAD_FAILED');
  const session = await joinedSession('@last');
  expect(session.status).toBe('failed');
  expect(session.executions[0]!.exit_code).toBe(3);
});

test('a job without its last rank waits for session join, which reports the missing rank', async () => {
  const alone = await runRank(0);
  expect(alone.code).toBe(0);
  expect(sessions()).toEqual([]);
  const fix = /inferscope session join (\S+)\)/.exec(alone.stderr)?.[1];
  expect(fix).toBe(join(jobs(), '29511-localhost'));
  const list = await cli(['session', 'list']);
  expect(list.stderr).toContain(
    `1 recorded, 0 not ended; to join those recorded: inferscope session join ${fix}`,
  );
  // A killed rank leaves its unfinished recording.
  mkdirSync(join(fix!, 'rank-1.recording'));
  const done = await cli(['session', 'join', fix!, '--name', 'rest', '--no-analyze']);
  expect(done.code).toBe(0);
  const session = await joinedSession('rest');
  expect(session.status).toBe('interrupted');
  expect(session.ranks).toMatchObject({
    missing: [1],
    files: [{ outcome: 'imported' }, { outcome: 'failed' }],
  });
  expect(readdirSync(fix!)).toEqual(['rank-1.recording']);
});

test('ranks left by an earlier job of the same name are not joined', async () => {
  await runRank(0);
  const old = join(jobs(), '29511-localhost/rank-0');
  writeFileSync(join(old, 'left'), '');
  await Promise.all([runRank(0), runRank(1)]);
  expect(sessions()).toHaveLength(1);
  expect(existsSync(old)).toBe(false);
});

test('several executions start together; --no-ranks saves one session per rank', async () => {
  // The program calls no cuBLAS, so the second execution ends with an error, which does not matter here.
  await Promise.all([0, 1].map((index) => runRank(index, ['--gemm-log'])));
  const starts = [0, 1].map((index) =>
    readFileSync(join(folder, `began-${index}`), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  );
  const began = starts.map((lines) => lines.map(([time]) => Number(time)));
  // Each execution has its own torch store.
  const [ports, others] = starts.map((lines) => lines.map(([, port]) => port));
  expect(ports).toEqual(others);
  expect(new Set(ports).size).toBe(2);
  expect(began.map((times) => times.length)).toEqual([2, 2]);
  // Either rank starts its second execution after both finished the first.
  expect(Math.min(began[0]![1]!, began[1]![1]!)).toBeGreaterThan(Math.max(began[0]![0]!, began[1]![0]!));
  await runRank(0, ['--no-ranks', '--name', 'own']);
  expect(sessions()).toHaveLength(2);
});

test('a folder without ranks is rejected', async () => {
  const { code, stderr } = await cli(['session', 'join', folder]);
  expect(code).toBe(2);
  expect(stderr).toContain('has no recorded rank');
});
