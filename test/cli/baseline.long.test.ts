import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { baselineCheckDocumentSchema } from '../../src/model/documents/baseline.js';
import { inferscope, place, tinyArgs } from './profile-cli.js';

const setup = place();

/** A run of vllm bench serve with `factor` times the fixture's TPOTs, varied by a few percent. */
function serveRun(name: string, factor: number, run: number): string {
  const fixture = 'test/fixtures/benchmark-results-from-schema/vllm-serve.json';
  const file = JSON.parse(readFileSync(fixture, 'utf8')) as Record<string, number>;
  const scatter = 1 + 0.01 * ((run * 7) % 4);
  for (const key of Object.keys(file)) {
    if (key.endsWith('_ms')) file[key]! *= scatter * (key.includes('tpot') ? factor : 1);
  }
  const path = join(setup.scratch, `${name}-${run}.json`);
  writeFileSync(path, JSON.stringify(file));
  return path;
}

function imported(name: string, factor: number): void {
  const files = [1, 2, 3, 4].map((run) => serveRun(name, factor, run));
  const { status, stderr, stdout } = inferscope(setup, ['import', ...files, '--name', name, '--quiet']);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('vllm bench serve: rate inf, concurrency 8');
}

const check = (...args: string[]) => inferscope(setup, ['baseline', 'check', ...args]);
const parsed = (stdout: string) => baselineCheckDocumentSchema.parse(JSON.parse(stdout)).data;

beforeAll(() => {
  imported('before', 1);
  imported('slower', 1.12);
  imported('again', 1.001);
  const { status, stderr } = inferscope(setup, ['baseline', 'set', 'before', '--name', 'main']);
  expect(status, stderr).toBe(0);
});

test('@last counts sessions with figures, as a session and as the baseline', () => {
  const samples = resolve('test/fixtures/nvidia-smi-580-h200/nvidia-smi-query.csv');
  expect(inferscope(setup, ['import', samples, '--quiet']).status).toBe(0);
  const found = parsed(check('@last', '--baseline', '@last~2', '--json').stdout);
  expect(found.sessions.map(({ name }) => name)).toEqual(['again']);
  expect(found.baseline.sessions.map(({ name }) => name)).toEqual(['before']);
  const unknown = check('--baseline', 'mian');
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('no baseline "mian"')]);
});

test('a regression exits with 1, as text and as a document; the tolerance decides', () => {
  const text = check('slower', '--baseline', 'main');
  expect([text.status, text.stderr]).toEqual([1, '']);
  expect(text.stdout).toContain('Regression: TPOT, TPOT median, TPOT p99.');
  const json = check('slower', '--baseline', 'main', '--json');
  expect(json.status).toBe(1);
  const data = parsed(json.stdout);
  expect(data.comparisons.filter(({ verdict }) => verdict === 'regression').map(({ id }) => id)).toEqual([
    'tpot',
    'tpot.median',
    'tpot.p99',
  ]);
  expect(data.comparisons.find(({ id }) => id === 'tpot')!.change).toBeCloseTo(0.12, 9);
  expect(check('slower', '--baseline', 'main', '--tolerance', '20%').status).toBe(0);
});

test('an equal session passes', () => {
  const { status, stdout } = check('again', '--baseline', 'main', '--json');
  expect(status).toBe(0);
  expect(parsed(stdout).result).toBe('passed');
});

test('accepts a baseline in a file of the repository', () => {
  const file = join(setup.scratch, 'perf', 'baseline.json');
  expect(inferscope(setup, ['baseline', 'set', 'before', '--file', file]).status).toBe(0);
  expect(check('slower', '--baseline', file).status).toBe(1);
});

test('usage errors: unknown baseline, a session against itself, other kinds, an invalid tolerance', () => {
  expect(check('slower', '--baseline', 'nope').stderr).toContain('Saved: main.');
  expect(check('before', '--baseline', 'main').stderr).toContain('part of the baseline');
  expect(check('slower', '--baseline', 'main', '--tolerance', 'much')).toMatchObject({
    status: 2,
    stdout: '',
  });
  expect(inferscope(setup, ['baseline', 'set', 'before', '--name', '../x']).status).toBe(2);
});

test('profiles of the embedded engine compare by launches; other kinds have no common metrics', () => {
  for (const name of ['p1', 'p2']) {
    const ran = inferscope(setup, tinyArgs(setup, '--launches', '3', '--name', name));
    expect(ran.status, ran.stderr).toBe(0);
  }
  expect(inferscope(setup, ['baseline', 'set', 'p1', '--name', 'profile']).stdout).toMatch(
    /tpot_ms .* 3 +launches/,
  );
  const { stdout, status } = check('p2', '--baseline', 'profile', '--json');
  const { result, comparisons } = parsed(stdout);
  expect(status).toBe(result === 'regression' ? 1 : 0);
  const ids = comparisons.map(({ id }) => id);
  for (const id of ['ttft_ms', 'tpot_ms', 'e2e_ms', 'output_tokens_per_s', 'peak_memory_bytes']) {
    expect(ids).toContain(id);
  }
  expect(comparisons.every(({ p_adjusted, verdict }) => p_adjusted !== null || verdict === 'missing')).toBe(
    true,
  );
  expect(check('p2', '--baseline', 'main')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('no metric in common'),
  });
});
