import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import {
  cli,
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  listSessions,
  startCli,
  environmentOf,
  canMountDisks,
} from './run-cli.js';

const setup = createSetup();

const run = (name: string, ...command: string[]) =>
  inferscope(setup, ['run', '--quiet', '--json', '--evaluator', 'none', '--name', name, '--', ...command]);
const statusOf = (name: string) => listSessions(setup).find((session) => session.name === name)?.status;
/** A saved log of a session. */
function readLog(name: string, stream: 'stdout' | 'stderr'): string {
  const id = listSessions(setup).find((session) => session.name === name)!.id;
  return readFileSync(join(setup.home, 'sessions', id, 'artifacts', 'clean', `${stream}.log`), 'utf8');
}
const writeScratchFile = (name: string, text: string) => {
  writeFileSync(join(setup.scratch, name), text);
  return join(setup.scratch, name);
};

test('a program that uses no GPU is saved with its time and telemetry, and a hint says how to record more', () => {
  const result = inferscope(setup, [
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
  expect([result.status, result.stdout.split('\n')[0]]).toEqual([0, '1']);
  expect(result.stderr).toMatch(/no summary: the program ran without a profiler: add --evaluator/);
  expect(statusOf('cpu')).toBe('complete');
});

test('a missing program, and one that is not executable, are reported', () => {
  const missing = expectFailure(run('missing', './no-such-program'), 4, 'E_WORKLOAD_FAILED');
  expect(missing.what).toContain('./no-such-program was not found');
  const plain = writeScratchFile('plain.txt', 'echo hello\n');
  chmodSync(plain, 0o644);
  expect(expectFailure(run('plain', plain), 3, 'E_PERMISSION').fix).toContain('chmod +x');
});

test('if the program ran out of memory, this is the error, and not that nothing was recorded', () => {
  const message = 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB.';
  const args = ['run', '--evaluator', 'none', '--quiet', '--', 'sh', '-c', `echo "${message}" >&2; exit 1`];
  const { status, stderr } = inferscope(setup, args);
  expect(status).toBe(4);
  expect(stderr).toContain('ran out of GPU memory (E_OUT_OF_MEMORY)');
  expect(stderr).not.toContain('no summary:');
});

test('a Python syntax error is quoted, with the path of the log', () => {
  const { why, fix } = expectFailure(
    run('syntax', 'python3', writeScratchFile('broken.py', 'def f(:\n')),
    4,
    'E_WORKLOAD_FAILED',
  );
  expect(why).toContain('SyntaxError');
  expect(fix).toContain('stderr.log');
  expect(readLog('syntax', 'stderr')).toContain('broken.py');
  expect(statusOf('syntax')).toBe('failed');
});

test('a crash by a signal is reported with the exit code of a shell, which --exit-code child returns', () => {
  const crash = ['sh', '-c', 'echo before; kill -SEGV $$'];
  const { what, fix } = expectFailure(run('crash', ...crash), 4, 'E_WORKLOAD_FAILED');
  expect(what).toContain('SIGSEGV');
  expect(fix).toContain('clean 139');
  expect(readLog('crash', 'stdout')).toBe('before\n');
  expect(
    inferscope(setup, ['run', '--quiet', '--evaluator', 'none', '--exit-code', 'child', '--', ...crash])
      .status,
  ).toBe(139);
});

test('the output before a timeout is saved', () => {
  const result = inferscope(setup, [
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
    'echo started; sleep 60',
  ]);
  expectFailure(result, 4, 'E_TIMEOUT');
  expect(readLog('late', 'stdout')).toBe('started\n');
});

test('nsys that --timeout ends while the program shuts down: its report is imported, and the error says so', () => {
  const fixture = join(packageRoot(), 'test/fixtures/nsys-2025.3.1-h200/tiny-nsys.sqlite');
  const bin = join(setup.scratch, 'bin');
  mkdirSync(bin, { recursive: true });
  const nsys = join(bin, 'nsys');
  // Like nsys, it writes its report when the program has exited; it exports to SQLite only.
  writeFileSync(
    nsys,
    `#!/bin/sh
command=$1; shift
case "$command" in
  --version) echo "NVIDIA Nsight Systems version 2025.3.1.90" ;;
  profile)
    while case "$1" in -*) true ;; *) false ;; esac; do case "$1" in --output=*) out="\${1#--output=}" ;; esac; shift; done
    "$@"; code=$?; echo report > "$out.nsys-rep"; exit $code ;;
  export)
    case "$2" in sqlite) ;; *) echo "unknown type $2" >&2; exit 1 ;; esac
    while [ $# -gt 0 ]; do if [ "$1" = --output ]; then cp ${fixture} "$2"; fi; shift; done ;;
esac
`,
  );
  chmodSync(nsys, 0o755);
  const program = 'trap "echo shuts down; sleep 0.3; exit 0" INT; echo serves; while :; do sleep 0.05; done';
  const args = [
    '--json',
    '--evaluator',
    'nsys',
    '--name',
    'cut',
    '--timeout',
    '1s',
    '--',
    'sh',
    '-c',
    program,
  ];
  const result = inferscope(setup, ['run', '--quiet', ...args], { PATH: `${bin}:${process.env['PATH']}` });
  expectFailure(result, 4, 'E_TIMEOUT');
  const { id, status } = listSessions(setup).find(({ name }) => name === 'cut')!;
  expect(status).toBe('failed');
  const kernels = inferscope(setup, [
    'sql',
    id,
    'SELECT count(*) > 0 AS found FROM kernels',
    '--format',
    'csv',
  ]);
  expect(kernels.stdout).toBe('found\ntrue\n');
  const shown = inferscope(setup, ['session', 'show', id]);
  expect(shown.stdout.replaceAll(/\s+/g, ' ')).toContain('The nsys execution timed out');
});

test('after Ctrl-C the program exits by itself, the session is saved, and the exit code is 130', async () => {
  const script = 'trap "echo cleaned up; exit 0" INT; echo ready; while :; do sleep 0.05; done';
  const { child, exit } = startCli(setup, [
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
  // The signal is sent only to inferscope, as by `kill`, and inferscope passes it on.
  process.kill(child.pid!, 'SIGINT');
  const { status, stderr } = await exit;
  expect([status, stderr.includes('has what was recorded')], stderr).toEqual([130, true]);
  expect(statusOf('stopped')).toBe('interrupted');
  expect(readLog('stopped', 'stdout')).toBe('ready\ncleaned up\n');
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('a missing profiler is reported before the program runs', () => {
  const touched = join(setup.scratch, 'touched');
  const env = { PATH: '/nonexistent' };
  const result = inferscope(
    setup,
    ['run', '--json', '--evaluator', 'nsys,none', '--', '/usr/bin/touch', touched],
    env,
  );
  // Where CUDA is installed, nsys is found in its folder, and the program runs.
  if (result.status === 3) {
    expect(expectFailure(result, 3, 'E_TOOL_MISSING').fix).toContain('inferscope doctor');
    expect(unfinishedSessions(setup)).toEqual([]);
  } else expect(result.stderr).toContain('nsys');
});

test.skipIf(!canMountDisks())(
  'a disk that fills up while the program writes gives E_DISK_FULL, and no incomplete session is left',
  () => {
    const inner = [
      'mount -t tmpfs -o size=3m tmpfs "$INFERSCOPE_HOME"',
      `"${process.execPath}" "${cli}" run --quiet --json --evaluator none -- sh -c 'head -c 8000000 /dev/zero | tr "\\0" x'  2> "$ERRORS" | tail -c 2000`,
      'echo; ls -A "$INFERSCOPE_HOME/sessions"',
    ].join('\n');
    const errors = join(setup.scratch, 'errors');
    const result = spawnSync('unshare', ['-Urm', 'bash', '-c', inner], {
      encoding: 'utf8',
      cwd: setup.scratch,
      env: { ...environmentOf(setup), ERRORS: errors },
    });
    const stderr = readFileSync(errors, 'utf8');
    expect(stderr.slice(-2000)).toContain('(E_DISK_FULL)');
    const names = result.stdout.trimEnd().split('\n').at(-1)!;
    expect(names.startsWith('.tmp')).toBe(false);
  },
);
