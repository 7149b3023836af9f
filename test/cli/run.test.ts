import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { expectFailure, inferscope, createSetup, listSessions } from './run-cli.js';

const setup = createSetup();

const runWithoutProfiler = ['run', '--no-analyze', '--evaluator', 'none'];

test('the program gets its arguments unchanged; its output is shown and saved', () => {
  const script = 'console.log(process.argv.slice(2).join("|"))';
  const program = [process.execPath, '-e', script, 'x', '--name', '--', '-h', 'a b'];
  const { status, stdout } = inferscope(setup, [...runWithoutProfiler, '--name', 'args', '--', ...program]);
  expect(status).toBe(0);
  expect(stdout).toContain('--name|--|-h|a b\n');
  expect(listSessions(setup).find(({ name }) => name === 'args')?.status).toBe('complete');
});

test('if the program fails, exits with 4 and reports its code, or exits with it if --exit-code child; the session is saved', () => {
  const failing = ['--', 'sh', '-c', 'echo broken >&2; exit 9'];
  const result = inferscope(setup, [...runWithoutProfiler, '--json', '--name', 'broken', ...failing]);
  const { why, fix } = expectFailure(result, 4, 'E_WORKLOAD_FAILED');
  expect(why).toContain('broken');
  expect(fix).toContain('clean 9');
  expect(listSessions(setup).find(({ name }) => name === 'broken')?.status).toBe('failed');
  expect(inferscope(setup, [...runWithoutProfiler, '--exit-code', 'child', ...failing]).status).toBe(9);
  const missing = inferscope(setup, [...runWithoutProfiler, '--', 'no-such-program']);
  expect(missing.status).toBe(4);
  expect(missing.stderr).toContain('no-such-program was not found');
});

test('invalid options are rejected', () => {
  expectFailure(inferscope(setup, ['run', '--json', '--evaluator', 'foo', '--', 'true']), 2, 'E_USAGE');
  expectFailure(
    inferscope(setup, [...runWithoutProfiler, '--json', '--timeout', 'soon', '--', 'true']),
    2,
    'E_USAGE',
  );
  expectFailure(
    inferscope(setup, [...runWithoutProfiler, '--json', '--capture-range', 'x', '--', 'true']),
    2,
    'E_USAGE',
  );
  // Options of evaluators that do not run.
  for (const unused of [['--ncu-kernel', 'gemm'], ['--torch-stack'], ['--nsys-trace', 'osrt']])
    expectFailure(
      inferscope(setup, [...runWithoutProfiler, '--json', ...unused, '--', 'true']),
      2,
      'E_USAGE',
    );
});

test('a token in the environment and on the command line is in no file of the session', () => {
  const secret = 'planted-value-of-this-test';
  const script = `echo "$MY_TOKEN and $1"; echo "$MY_TOKEN" >&2; exit 1`;
  const command = ['--', 'sh', '-c', script, 'sh', `--api-key=${secret}`];
  const { stderr } = inferscope(setup, [...runWithoutProfiler, '--name', 'secret', ...command], {
    MY_TOKEN: secret,
  });
  expect(stderr.slice(stderr.indexOf('error:'))).not.toContain(secret);
  const search = () => execFileSync('grep', ['-rl', secret, setup.home], { encoding: 'utf8' });
  // grep exits with 1 if no file contains it.
  expect(search).toThrow();
});
