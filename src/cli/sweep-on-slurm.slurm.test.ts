import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import process from 'node:process';
import { beforeEach, expect, test } from 'vitest';
import { sweepDocumentSchema, type SweepResult } from '../model/documents/sweep.js';
import { packageRoot } from '../model/installation.js';
import { testFolder } from '../session/test-folder.js';

// npm run test:slurm starts a Slurm and sets SLURM_CONF; tasks run dist/run-child.js.
const cli = join(packageRoot(), 'dist/cli.js');
let folder = '';
beforeEach(() => {
  folder = testFolder();
});

const env = () => ({ ...process.env, INFERSCOPE_HOME: join(folder, 'home') });
const sweep = (...words: string[]) =>
  spawnSync(process.execPath, [cli, 'sweep', ...words], { cwd: folder, env: env(), encoding: 'utf8' });
const sweepOf = (text: string): SweepResult => sweepDocumentSchema.parse(JSON.parse(text)).data;
const outcomesOf = ({ runs }: SweepResult) => runs.map(({ outcome }) => outcome);

/** The newest journal. */
const journal = (): SweepResult => {
  const results = join(folder, 'results');
  const name = readdirSync(results).findLast((file) => /^sweep-.*\.json$/.test(file))!;
  return sweepOf(readFileSync(join(results, name), 'utf8'));
};

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 600) throw new Error('It did not happen in a minute.');
    await sleep(100);
  }
}

const queued = (...more: string[]): string[] =>
  execFileSync('squeue', ['--noheader', '--array', '--format', '%i', ...more], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

/** A program that marks each start, so that the starts per value of {n} can be counted. */
const script = (work: string) => ['--', 'run', '--no-analyze', '--evaluator', 'none', '--', 'sh', '-c', work];
const starts = (n: number) => readFileSync(join(folder, `started-${n}`), 'utf8').length;

test('a grid on Slurm gives the same result as locally; a failed run does not stop the rest', () => {
  const grid = ['--grid', 'batch-size=1,2,many', '--json'];
  const command = ['--', 'estimate', '--model', 'llama-3.1-8b', '--gpu', 'H100'];
  const onSlurmRun = sweep(...grid, '--on', 'slurm', ...command);
  expect(onSlurmRun.status, onSlurmRun.stderr).toBe(4);
  const localRun = sweep(...grid, ...command);
  expect(localRun.status, localRun.stderr).toBe(4);
  const [onSlurm, onMachine] = [sweepOf(onSlurmRun.stdout), sweepOf(localRun.stdout)];
  expect(outcomesOf(onSlurm)).toEqual(['measured', 'measured', 'failed']);
  const printed = ({ stamp }: SweepResult, number: number) =>
    JSON.parse(readFileSync(join(folder, `results/sweep-${stamp}/run-00${number}.stdout.log`), 'utf8'));
  const resultsOf = (result: SweepResult) =>
    result.runs.map(({ key, outcome, attempts, exit_code, failure, job, figures, number, duration_s }) => ({
      key,
      outcome,
      attempts,
      exit_code,
      failure,
      job,
      figures,
      timed: duration_s! > 0.1,
      printed: outcome === 'measured' ? printed(result, number).data : null,
    }));
  expect(resultsOf(onSlurm)).toEqual(resultsOf(onMachine));
});

test('a task canceled by another user is retried; a requeued one starts again', async () => {
  const words = ['--grid', 'n=1,2,3,4', '--on', 'slurm', '--jobs', '1', '--quiet', '--json'];
  const sweeping = spawn(
    process.execPath,
    [cli, 'sweep', ...words, ...script('printf x >> started-{n}; sleep 2')],
    { cwd: folder, env: env(), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let text = '';
  sweeping.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const end = once(sweeping, 'exit');
  await until(() => queued().some((id) => id.endsWith('_3')) && existsSync(join(folder, 'started-1')));
  execFileSync('scancel', [queued().find((id) => id.endsWith('_3'))!]);
  const [running] = queued('--states', 'RUNNING');
  execFileSync('scontrol', ['requeue', running!]);
  // A requeued task would wait two minutes.
  await until(() => queued('--states', 'PENDING').includes(running!));
  execFileSync('scontrol', ['update', `JobId=${running}`, 'StartTime=now']);
  expect((await end)[0]).toBe(0);
  const { runs, status } = sweepOf(text);
  expect(status).toBe('complete');
  expect(runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
    ['measured', 1],
    ['measured', 1],
    ['measured', 1],
    ['measured', 2],
  ]);
  expect([starts(1), starts(2), starts(3), starts(4)]).toEqual([2, 1, 1, 1]);
  expect(readdirSync(join(folder, 'home/sessions')).length).toBeGreaterThanOrEqual(4);
});

test('Ctrl-C cancels the tasks; --resume runs the rest, locally or on Slurm', async () => {
  const words = ['--grid', 'n=1,2,3', '--on', 'slurm', '--jobs', '1', '--quiet'];
  const running = spawn(
    process.execPath,
    [cli, 'sweep', ...words, ...script('printf x >> started-{n}; sleep {n}')],
    { cwd: folder, env: env(), stdio: 'inherit' },
  );
  await until(() => existsSync(join(folder, 'started-2')));
  running.kill('SIGINT');
  expect((await once(running, 'exit'))[0]).toBe(130);
  expect(queued()).toEqual([]);
  expect(outcomesOf(journal())).toEqual(['measured', 'interrupted', 'interrupted']);
  const resumed = sweep('--resume', '--quiet');
  expect(resumed.status, resumed.stderr).toBe(0);
  expect(outcomesOf(journal())).toEqual(['measured', 'measured', 'measured']);
  expect([starts(1), starts(2), starts(3)]).toEqual([1, 2, 1]);
});

test('if the sweep itself is killed its tasks continue; --resume uses their results without waiting', async () => {
  const words = ['--grid', 'n=1,2', '--on', 'slurm', '--quiet'];
  const running = spawn(
    process.execPath,
    [cli, 'sweep', ...words, ...script('printf x >> started-{n}; sleep 4')],
    { cwd: folder, env: env(), stdio: 'inherit' },
  );
  await until(() => existsSync(join(folder, 'started-1')) && existsSync(join(folder, 'started-2')));
  running.kill('SIGKILL');
  await once(running, 'exit');
  const early = sweep('--resume', '--quiet');
  expect(early.status).toBe(2);
  expect(early.stderr).toMatch(/are still with Slurm: \d+_0, \d+_1[^]*scancel \d+\n/);
  await until(() => queued().length === 0);
  const resumed = sweep('--resume', '--quiet');
  expect(resumed.status, resumed.stderr).toBe(0);
  expect(outcomesOf(journal())).toEqual(['measured', 'measured']);
  expect([starts(1), starts(2)]).toEqual([1, 1]);
});

test('an error of sbatch is printed', () => {
  const refused = sweep(
    '--grid',
    'n=1',
    '--on',
    'slurm',
    '--sbatch',
    '--partition=nowhere',
    '--quiet',
    ...script('true {n}'),
  );
  expect(refused.status).toBe(3);
  expect(refused.stderr).toMatch(/partition/i);
  expect(queued()).toEqual([]);
});

test('doctor describes this Slurm', () => {
  const result = spawnSync(process.execPath, [cli, 'doctor', '--json'], { env: env(), encoding: 'utf8' });
  const rows = JSON.parse(result.stdout).data.rows as { id: string; status: string; found: string }[];
  const [version] = /\d[\d.]+/.exec(execFileSync('sbatch', ['--version'], { encoding: 'utf8' }))!;
  expect(rows.find(({ id }) => id === 'slurm')).toMatchObject({
    status: 'ok',
    found: `${version}; SIGKILL 30 s after a job's time limit or cancellation: unwritten profiler reports are lost`,
  });
  expect(rows.find(({ id }) => id === 'slurm_home')).toMatchObject({ status: 'ok', found: 'one node' });
});
