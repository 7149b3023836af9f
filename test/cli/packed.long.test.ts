import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { expectFailure, inferscope, createSetup, tinyProfileArgs } from './run-cli.js';

// Tests the package as users get it: packed, and installed into an empty folder outside of the checkout. Needs npm's registry.
const setup = createSetup();
const folder = join(setup.scratch, 'a project');
const installed = { ...setup, cli: join(folder, 'node_modules', 'inferscope', 'dist', 'cli.js') };

/** Runs a printed npm command in a shell, without the npm settings of the checkout. @returns its stdout */
function runNpm(command: string, cwd: string): string {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) && name !== 'INIT_CWD'),
  );
  const result = spawnSync(command, { cwd, env, shell: true, encoding: 'utf8' });
  expect(result.status, `${command}\n${result.stderr}`).toBe(0);
  return result.stdout;
}

beforeAll(() => {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true}');
  const tarball = runNpm(`npm pack --silent --pack-destination "${setup.scratch}"`, packageRoot()).trim();
  runNpm(`npm install --no-audit --no-fund "${join(setup.scratch, tarball)}"`, folder);
}, 300_000);

const profileArgs = tinyProfileArgs(setup, '--json');

test('without the engine it takes at most 120 MB, opens a session, imports a trace and explains it', () => {
  expect(existsSync(join(folder, 'node_modules', 'onnxruntime-node'))).toBe(false);
  const bytes = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' })
    .map((file) => lstatSync(join(folder, 'node_modules', file)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
  expect(bytes / 1e6).toBeLessThanOrEqual(120);
  const fixtures = join(packageRoot(), 'test', 'fixtures');
  for (const args of [
    ['session', 'import', join(fixtures, 'diagnosis', 'launch_bound_decode-fault.tgz')],
    ['explain', '@last'],
    ['import', join(fixtures, 'kineto-torch2.11-h200', 'kineto-tiny.json.gz')],
    ['explain', '@last', '--what-if', 'cudagraph'],
    ['analyze', '@last', '--question', 'why is decode slow?'],
  ]) {
    const result = inferscope(installed, args);
    expect(result.status, `${args.join(' ')}\n${result.stderr}`).toBe(0);
    expect(result.stdout).not.toBe('');
  }
}, 300_000);

test('without the engine `profile` prints the command that adds it, and that command works', () => {
  const failure = expectFailure(inferscope(installed, profileArgs), 3, 'E_ENGINE_MISSING');
  runNpm(failure.fix, setup.scratch);
  const result = inferscope(installed, profileArgs);
  expect(result.status, result.stderr).toBe(0);
  expect(JSON.parse(result.stdout)).toMatchObject({
    schema: expect.stringContaining('inferscope/profile') as string,
  });
}, 300_000);

test('source maps are not shipped', () => {
  const files = readdirSync(join(folder, 'node_modules', 'inferscope'), {
    recursive: true,
    encoding: 'utf8',
  });
  expect(files.filter((file) => file.endsWith('.map'))).toEqual([]);
});
