import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { expectFailure, inferscope, place, tinyArgs } from './profile-cli.js';

/** The package as a user gets it: packed and installed into an empty folder outside of the checkout. Needs npm's registry. */
const setup = place();
const folder = join(setup.scratch, 'a project');
const installed = { ...setup, cli: join(folder, 'node_modules', 'inferscope', 'dist', 'cli.js') };
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

function npm(line: string, cwd: string): string {
  // Runs a printed command in a shell without changes, and without the npm settings of the checkout.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) && name !== 'INIT_CWD'),
  );
  const ran = spawnSync(line, { cwd, env, shell: true, encoding: 'utf8' });
  expect(ran.status, `${line}\n${ran.stderr}`).toBe(0);
  return ran.stdout;
}

beforeAll(() => {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true}');
  const packed = npm(`npm pack --silent --pack-destination "${setup.scratch}"`, packageRoot()).trim();
  npm(`npm install --no-audit --no-fund "${join(setup.scratch, packed)}"`, folder);
}, 300_000);

const profile = tinyArgs(setup, '--json');

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
    const ran = inferscope(installed, args);
    expect(ran.status, `${args.join(' ')}\n${ran.stderr}`).toBe(0);
    expect(ran.stdout).not.toBe('');
  }
}, 300_000);

test('without the engine `profile` prints the command that adds it, and that command works', () => {
  const failure = expectFailure(inferscope(installed, profile), 3, 'E_ENGINE_MISSING');
  npm(failure.fix, setup.scratch);
  const ran = inferscope(installed, profile);
  expect(ran.status, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({
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
