import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { expectFailure, inferscope, place, sessions } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

const plain = ['run', '--no-analyze', '--evaluator', 'none'];

test('the program gets its arguments unchanged; its output is shown and saved', () => {
  const script = 'console.log(process.argv.slice(2).join("|"))';
  const program = [process.execPath, '-e', script, 'x', '--name', '--', '-h', 'a b'];
  const { status, stdout } = inferscope(setup, [...plain, '--name', 'args', '--', ...program]);
  expect(status).toBe(0);
  expect(stdout).toContain('--name|--|-h|a b\n');
  expect(sessions(setup).find(({ name }) => name === 'args')?.status).toBe('complete');
});

test('a failing program: exit 4 with its code reported, or its own with --exit-code child; the session is saved', () => {
  const failing = ['--', 'sh', '-c', 'echo broken >&2; exit 9'];
  const ran = inferscope(setup, [...plain, '--json', '--name', 'broken', ...failing]);
  const { why, fix } = expectFailure({ ...ran, stderr: onlyError(ran.stderr) }, 4, 'E_WORKLOAD_FAILED');
  expect(why).toContain('broken');
  expect(fix).toContain('clean 9');
  expect(sessions(setup).find(({ name }) => name === 'broken')?.status).toBe('failed');
  expect(inferscope(setup, [...plain, '--exit-code', 'child', ...failing]).status).toBe(9);
  const missing = inferscope(setup, [...plain, '--', 'no-such-program-of-ours']);
  expect(missing.status).toBe(4);
  expect(missing.stderr).toContain('no-such-program-of-ours was not found');
});

function onlyError(stderr: string): string {
  return stderr.slice(stderr.indexOf('error: '));
}

test('invalid options are errors with valid ones', () => {
  expectFailure(inferscope(setup, ['run', '--json', '--evaluator', 'foo', '--', 'true']), 2, 'E_USAGE');
  expectFailure(inferscope(setup, [...plain, '--json', '--timeout', 'soon', '--', 'true']), 2, 'E_USAGE');
  expectFailure(inferscope(setup, [...plain, '--json', '--capture-range', 'x', '--', 'true']), 2, 'E_USAGE');
  // An option of an evaluator that does not run.
  for (const unused of [['--ncu-kernel', 'gemm'], ['--torch-stack'], ['--nsys-trace', 'osrt']])
    expectFailure(inferscope(setup, [...plain, '--json', ...unused, '--', 'true']), 2, 'E_USAGE');
});

test('a token in the environment and on the command line is in no file of the session', () => {
  const secret = 'planted-value-of-this-test';
  const script = `echo "$MY_TOKEN and $1"; echo "$MY_TOKEN" >&2; exit 1`;
  const command = ['--', 'sh', '-c', script, 'sh', `--api-key=${secret}`];
  const { stderr } = inferscope(setup, [...plain, '--name', 'secret', ...command], { MY_TOKEN: secret });
  expect(stderr.slice(stderr.indexOf('error:'))).not.toContain(secret);
  const found = () => execFileSync('grep', ['-rl', secret, setup.home], { encoding: 'utf8' });
  expect(found).toThrow();
});
