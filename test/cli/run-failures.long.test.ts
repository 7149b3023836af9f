import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { testFolder } from '../../src/session/test-folder.js';
import {
  cli,
  environment,
  expectFailure,
  inferscope,
  leftovers,
  place,
  sessions,
  start,
} from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

const run = (name: string, ...command: string[]) =>
  inferscope(setup, ['run', '--quiet', '--json', '--evaluator', 'none', '--name', name, '--', ...command]);
/** Removes the program's own output before the error. */
const error = (ran: ReturnType<typeof run>) => ({
  ...ran,
  stderr: ran.stderr.slice(ran.stderr.lastIndexOf('error: ')),
});
const status = (name: string) => sessions(setup).find((session) => session.name === name)?.status;
/** A saved log of a session. */
function log(name: string, stream: 'stdout' | 'stderr'): string {
  const id = sessions(setup).find((session) => session.name === name)!.id;
  return readFileSync(join(setup.home, 'sessions', id, 'artifacts', 'clean', `${stream}.log`), 'utf8');
}
const file = (name: string, text: string) => {
  writeFileSync(join(setup.scratch, name), text);
  return join(setup.scratch, name);
};

test('a program that uses no GPU: its time and telemetry are saved, and a hint says how to record more', () => {
  const ran = inferscope(setup, [
    'run',
    '--evaluator',
    'none',
    '--name',
    'cpu',
    '--',
    process.execPath,
    '-e',
    'console.log(1)',
  ]);
  expect([ran.status, ran.stdout.split('\n')[0]]).toEqual([0, '1']);
  expect(ran.stderr).toMatch(/no summary: the program ran without a profiler: add --evaluator/);
  expect(status('cpu')).toBe('complete');
});

test('a missing program, and one that is not executable', () => {
  const missing = expectFailure(error(run('missing', './no-such-program')), 4, 'E_WORKLOAD_FAILED');
  expect(missing.what).toContain('./no-such-program was not found');
  const plain = file('plain.txt', 'echo hello\n');
  chmodSync(plain, 0o644);
  expect(expectFailure(error(run('plain', plain)), 3, 'E_PERMISSION').fix).toContain('chmod +x');
});

test('a program that ran out of memory reports that first, not that nothing was recorded', () => {
  const message = 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB.';
  const words = ['run', '--evaluator', 'none', '--quiet', '--', 'sh', '-c', `echo "${message}" >&2; exit 1`];
  const { status, stderr } = inferscope(setup, words);
  expect(status).toBe(4);
  expect(stderr).toContain('ran out of GPU memory (E_OUT_OF_MEMORY)');
  expect(stderr).not.toContain('no summary:');
});

test('a Python syntax error is quoted with the path of the log', () => {
  const { why, fix } = expectFailure(
    error(run('syntax', 'python3', file('broken.py', 'def f(:\n'))),
    4,
    'E_WORKLOAD_FAILED',
  );
  expect(why).toContain('SyntaxError');
  expect(fix).toContain('stderr.log');
  expect(log('syntax', 'stderr')).toContain('broken.py');
  expect(status('syntax')).toBe('failed');
});

test('a crash by a signal is reported as by a shell, and returned with --exit-code child', () => {
  const crash = ['sh', '-c', 'echo before; kill -SEGV $$'];
  const { what, fix } = expectFailure(error(run('crash', ...crash)), 4, 'E_WORKLOAD_FAILED');
  expect(what).toContain('SIGSEGV');
  expect(fix).toContain('clean 139');
  expect(log('crash', 'stdout')).toBe('before\n');
  expect(
    inferscope(setup, ['run', '--quiet', '--evaluator', 'none', '--exit-code', 'child', '--', ...crash])
      .status,
  ).toBe(139);
});

test('a timeout saves the output until then', () => {
  const ran = inferscope(setup, [
    'run',
    '--quiet',
    '--json',
    '--evaluator',
    'none',
    '--name',
    'late',
    '--timeout',
    '500ms',
    '--',
    'sh',
    '-c',
    'echo begun; sleep 60',
  ]);
  expectFailure(error(ran), 4, 'E_TIMEOUT');
  expect(log('late', 'stdout')).toBe('begun\n');
});

test('Ctrl-C: the program exits by itself, the session is saved, exit 130', async () => {
  const script = 'trap "echo cleaned up; exit 0" INT; echo ready; while :; do sleep 0.05; done';
  const { child, ended } = start(setup, [
    'run',
    '--evaluator',
    'none',
    '--name',
    'stopped',
    '--',
    'sh',
    '-c',
    script,
  ]);
  let output = '';
  child.stdout!.on('data', (chunk) => (output += String(chunk)));
  while (!output.includes('ready')) await sleep(10);
  // The signal is sent only to inferscope, as `kill` does, which passes it on.
  process.kill(child.pid!, 'SIGINT');
  const { status: code, stderr } = await ended;
  expect([code, stderr.includes('has what was recorded')], stderr).toEqual([130, true]);
  expect(status('stopped')).toBe('interrupted');
  expect(log('stopped', 'stdout')).toBe('ready\ncleaned up\n');
  expect(leftovers(setup)).toEqual([]);
});

test('a missing profiler is reported before the program runs', () => {
  const touched = join(setup.scratch, 'touched');
  const env = { PATH: '/nonexistent' };
  const ran = inferscope(
    setup,
    ['run', '--json', '--evaluator', 'nsys,none', '--', '/usr/bin/touch', touched],
    env,
  );
  // Where CUDA is installed, nsys is found in its folder, and the program runs.
  if (ran.status === 3) {
    expect(expectFailure(ran, 3, 'E_TOOL_MISSING').fix).toContain('inferscope doctor');
    expect(leftovers(setup)).toEqual([]);
  } else expect(ran.stderr).toContain('nsys');
});

const mounts = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'tmpfs', testFolder()]).status === 0;
test.skipIf(!mounts)(
  'a disk that fills up while the program writes: E_DISK_FULL, nothing half is left',
  () => {
    const inner = [
      'mount -t tmpfs -o size=3m tmpfs "$INFERSCOPE_HOME"',
      `"${process.execPath}" "${cli}" run --quiet --json --evaluator none -- sh -c 'head -c 8000000 /dev/zero | tr "\\0" x'  2> "$ERRORS" | tail -c 2000`,
      'echo; ls -A "$INFERSCOPE_HOME/sessions"',
    ].join('\n');
    const errors = join(setup.scratch, 'errors');
    const ran = spawnSync('unshare', ['-Urm', 'bash', '-c', inner], {
      encoding: 'utf8',
      cwd: setup.scratch,
      env: { ...environment(setup), ERRORS: errors },
    });
    const talk = readFileSync(errors, 'utf8');
    expect(talk.slice(-2000)).toContain('(E_DISK_FULL)');
    const names = ran.stdout.trimEnd().split('\n').at(-1)!;
    expect(names.startsWith('.tmp')).toBe(false);
  },
);
