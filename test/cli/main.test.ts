import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { cli, environmentOf, expectFailure, inferscope, createSetup, widestLine } from './run-cli.js';

const setup = createSetup();
/** Commands that --help must list (src/cli/commands.test.ts checks the examples and width of all). */
const commands = [
  'profile',
  'run',
  'import',
  'memory',
  'roofline',
  'estimate',
  'export',
  'report',
  'session',
  'sql',
  'doctor',
  'schema',
];
const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
  version: string;
};

test('--version prints the version of the package', () => {
  for (const flag of ['--version', '-V']) {
    expect(inferscope(setup, [flag])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  }
});

test('--help lists every command, as does the binary without arguments', () => {
  const { status, stdout, stderr } = inferscope(setup, ['--help']);
  expect([status, stderr]).toEqual([0, '']);
  for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command}[ |]`, 'm'));
  expect(widestLine(stdout)).toBeLessThanOrEqual(80);
  expect(inferscope(setup, [])).toEqual({ status: 0, stdout, stderr: '' });
});

test('help COMMAND prints the same as COMMAND --help', () => {
  const { status, stdout, stderr } = inferscope(setup, ['doctor', '--help']);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout.match(/^ {2}\$ inferscope /gm)).toHaveLength(2);
  expect(inferscope(setup, ['help', 'setup']).stdout).toBe(stdout);
});

test('an import loads no library to start programs', () => {
  const coverage = join(setup.scratch, 'coverage');
  const trace = join(packageRoot(), 'test/fixtures/nsys-2025.3.1-h200/tiny-nsys.parquetdir');
  const { status } = spawnSync(process.execPath, [cli, 'import', trace, '--no-raw', '--no-analyze'], {
    env: { ...environmentOf(createSetup()), NODE_V8_COVERAGE: coverage },
  });
  expect(status).toBe(0);
  // One file per process: the command and the one that imports.
  const scripts = readdirSync(coverage).map((file) => readFileSync(join(coverage, file), 'utf8'));
  expect(scripts.length).toBeGreaterThanOrEqual(2);
  for (const text of scripts) expect(text).not.toContain('node_modules/execa/');
});

describe('invalid command lines', () => {
  test('an unknown command suggests the nearest', () => {
    expect(expectFailure(inferscope(setup, ['profle', '--json']), 2, 'E_USAGE').why).toContain('profile');
    expect(expectFailure(inferscope(setup, ['session', 'lst', '--json']), 2, 'E_USAGE').why).toContain(
      'list',
    );
    const schema = inferscope(setup, ['schema', 'profil']);
    expect([schema.status, schema.stdout]).toEqual([2, '']);
    expect(schema.stderr).toContain('Did you mean profile?\n  inferscope schema profile');
  });

  test('an unknown flag of a command typed by its alias suggests its own flags', () => {
    for (const words of [
      ['session', 'ls', '--limt'],
      ['setup', '--requir'],
    ]) {
      const { why, fix } = expectFailure(inferscope(setup, [...words, '--json']), 2, 'E_USAGE');
      expect(why).toMatch(/^Did you mean --(limit|require)\?$/);
      expect(fix).toMatch(/^See inferscope (session list|doctor) --help\.$/);
    }
  });

  test('validate names the default folder without profiles', () => {
    const empty = join(setup.scratch, 'empty');
    mkdirSync(join(empty, 'results', 'memory-profiles'), { recursive: true });
    const failed = expectFailure(inferscope(setup, ['validate', '--json'], {}, empty), 2, 'E_USAGE');
    expect(failed.why).toBe(`${join('results', 'memory-profiles')} holds none of schema 2.0.`);
  });

  test('an unknown flag before the command', () => {
    expectFailure(inferscope(setup, ['--jsn', 'profile', '--json']), 2, 'E_USAGE');
  });

  test('a subcommand without its command suggests the whole command', () => {
    expect(expectFailure(inferscope(setup, ['list', '--json']), 2, 'E_USAGE').fix).toContain(
      'inferscope session list',
    );
    expect(expectFailure(inferscope(setup, ['check', '--json']), 2, 'E_USAGE').fix).toBe(
      'Type: inferscope baseline check',
    );
    expect(expectFailure(inferscope(setup, ['help', 'nope', '--json']), 2, 'E_USAGE').why).toContain(
      'profile',
    );
  });

  test('`session` alone lists its subcommands on stderr', () => {
    const { status, stdout, stderr } = inferscope(setup, ['session']);
    expect([status, stdout]).toEqual([2, '']);
    for (const verb of ['list', 'show', 'verify', 'export']) expect(stderr).toContain(verb);
    expect(stderr).toContain('inferscope session --help');
  });

  test('options after -- belong to the program: its --json does not change inferscope’s errors', () => {
    const result = inferscope(setup, ['run', '--evaluator', 'nothing', '--', 'prog', '--json', 'profile']);
    expect([result.status, result.stdout]).toEqual([2, '']);
    expect(result.stderr).toContain('(E_USAGE)');
  });

  test('run without a program, without --, or with an unknown option', () => {
    expect(expectFailure(inferscope(setup, ['run', '--json']), 2, 'E_USAGE').why).toContain(
      'run [options] -- command',
    );
    expect(expectFailure(inferscope(setup, ['run', '--json', 'python', 'x.py']), 2, 'E_USAGE').fix).toContain(
      'inferscope run [options] -- python x.py',
    );
    const unknown = inferscope(setup, ['run', '--json', '--max-tokens', '8', '--', 'true']);
    expect(expectFailure(unknown, 2, 'E_USAGE').fix).toContain('after --');
    expect(expectFailure(inferscope(setup, ['session', 'compare', '--json']), 2, 'E_USAGE').why).toContain(
      'inferscope session compare [options] <sessions...>',
    );
  });

  test('a report without sessions', () => {
    const { status, stdout, stderr } = inferscope(setup, ['report']);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain('(E_SESSION_NOT_FOUND)');
  });
});

test('a reader that closes the pipe early is not a failure', () => {
  const script = `"${process.execPath}" "${cli}" schema profile | head -1`;
  const result = spawnSync('bash', ['-o', 'pipefail', '-c', script], {
    encoding: 'utf8',
    env: environmentOf(setup),
  });
  expect(result).toMatchObject({ status: 0, stdout: '{\n', stderr: '' });
});

test.runIf(existsSync('/dev/full'))('a full disk behind stdout is reported', () => {
  const script = `"${process.execPath}" "${cli}" schema profile > /dev/full`;
  const result = spawnSync('bash', ['-c', script], { encoding: 'utf8', env: environmentOf(setup) });
  expect(result.status).toBe(3);
  expect(result.stderr).toContain('(E_DISK_FULL)');
});

test('a closed stderr is not a failure', () => {
  const script = `"${process.execPath}" "${cli}" profle 2>&1 >/dev/null | true`;
  const result = spawnSync('bash', ['-o', 'pipefail', '-c', script], {
    encoding: 'utf8',
    env: environmentOf(setup),
  });
  expect([result.status, result.stderr]).toEqual([2, '']);
});

test('prints color only to terminals, or if FORCE_COLOR demands it', () => {
  const escape = '\u001B[';
  const wrong = ['profle'];
  expect(inferscope(setup, wrong, { CI: 'true' }).stderr).not.toContain(escape);
  expect(inferscope(setup, ['doctor'], { CI: 'true' }).stdout).not.toContain(escape);
  expect(inferscope(setup, wrong, { FORCE_COLOR: '0' }).stderr).not.toContain(escape);
  expect(inferscope(setup, wrong, { FORCE_COLOR: '1' }).stderr).toContain(escape);
  expect(inferscope(setup, wrong, { FORCE_COLOR: '1', NO_COLOR: '1' }).stderr).not.toContain(escape);
});
