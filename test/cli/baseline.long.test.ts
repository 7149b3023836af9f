import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { baselineCheckDocumentSchema } from '../../src/model/documents/baseline.js';
import { inferscope, createSetup, tinyProfileArgs } from './run-cli.js';
import { captures } from './capture-files.js';
import { importServeRuns } from './serve-runs.js';

const setup = createSetup();

function importRuns(name: string, tpotFactor: number): void {
  const { stdout } = importServeRuns(setup, { name, tpotFactor, runs: 4 });
  expect(stdout).toContain('vllm bench serve: rate inf, concurrency 8');
}

const check = (...args: string[]) => inferscope(setup, ['baseline', 'check', ...args]);
const parseCheck = (stdout: string) => baselineCheckDocumentSchema.parse(JSON.parse(stdout)).data;

beforeAll(() => {
  importRuns('before', 1);
  importRuns('slower', 1.12);
  importRuns('again', 1.001);
  const { status, stderr } = inferscope(setup, ['baseline', 'set', 'before', '--name', 'main']);
  expect(status, stderr).toBe(0);
});

test('@last selects the latest session with figures, as a session and as the baseline', () => {
  expect(inferscope(setup, ['import', captures.query, '--quiet']).status).toBe(0);
  const latest = parseCheck(check('@last', '--baseline', '@last~2', '--json').stdout);
  expect(latest.sessions.map(({ name }) => name)).toEqual(['again']);
  expect(latest.baseline.sessions.map(({ name }) => name)).toEqual(['before']);
  const unknown = check('--baseline', 'mian');
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('no baseline "mian"')]);
});

test('a regression exits with 1, as text and as JSON; --tolerance decides what is a regression', () => {
  const text = check('slower', '--baseline', 'main');
  expect([text.status, text.stderr]).toEqual([1, '']);
  expect(text.stdout).toContain('Regression: TPOT, TPOT median, TPOT p99.');
  const json = check('slower', '--baseline', 'main', '--json');
  expect(json.status).toBe(1);
  const data = parseCheck(json.stdout);
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
  expect(parseCheck(stdout).result).toBe('passed');
});

test('accepts a baseline in a file of the repository', () => {
  const file = join(setup.scratch, 'perf', 'baseline.json');
  expect(inferscope(setup, ['baseline', 'set', 'before', '--file', file]).status).toBe(0);
  expect(check('slower', '--baseline', file).status).toBe(1);
});

test('a session can be the baseline, even if its name looks like that of a file', () => {
  expect(inferscope(setup, ['session', 'rename', 'before', 'before.json']).status).toBe(0);
  const { baseline } = parseCheck(check('again', '--baseline', 'before.json', '--json').stdout);
  expect(baseline.sessions.map(({ name }) => name)).toEqual(['before.json']);
  expect(inferscope(setup, ['session', 'rename', 'before.json', 'before']).status).toBe(0);
  expect(check('again', '--baseline', 'nothing.json').stderr).toContain('no baseline file');
});

test('usage errors: an unknown baseline, a session compared with itself, an invalid tolerance or name', () => {
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
    const result = inferscope(setup, tinyProfileArgs(setup, '--launches', '3', '--name', name));
    expect(result.status, result.stderr).toBe(0);
  }
  expect(inferscope(setup, ['baseline', 'set', 'p1', '--name', 'profile']).stdout).toMatch(
    /TPOT .* 3 +launches/,
  );
  const { stdout, status } = check('p2', '--baseline', 'profile', '--json');
  const { result, comparisons } = parseCheck(stdout);
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
