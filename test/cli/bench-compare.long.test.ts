import { beforeAll, expect, test } from 'vitest';
import { benchCompareDocumentSchema } from '../../src/model/documents/bench-compare.js';
import { inferscope, createSetup } from './run-cli.js';
import { importServeRuns } from './serve-runs.js';

const setup = createSetup();

function importRuns(name: string, tpotFactor: number, runs: number): void {
  importServeRuns(setup, { name, tpotFactor, runs });
}

const compare = (...args: string[]) => inferscope(setup, ['bench', 'compare', ...args]);

beforeAll(() => {
  importRuns('before', 1, 5);
  importRuns('slower', 1.2, 5);
  importRuns('again', 1, 4);
  importRuns('few', 1.2, 3);
  const { status, stderr } = inferscope(setup, ['baseline', 'set', 'before', '--name', 'main']);
  expect(status, stderr).toBe(0);
});

test('a gate decides the exit code; without one it is 0', () => {
  const regression = compare('before', 'slower', '--fail-on', 'tpot=5%', '--json');
  expect([regression.status, regression.stderr]).toEqual([1, '']);
  const { data } = benchCompareDocumentSchema.parse(JSON.parse(regression.stdout));
  expect(data.gates).toEqual([{ metric: 'tpot', share: 0.05, result: 'failed', by: ['tpot'] }]);
  const tpot = data.comparisons.find(({ id }) => id === 'tpot')!;
  // All five are slower: 2 of C(10, 5) = 252 arrangements, in a family of one.
  expect(tpot).toMatchObject({ method: 'mann_whitney', family: 'gate', n: [5, 5], verdict: 'worse' });
  expect(tpot.p_adjusted).toBeCloseTo(2 / 252, 12);
  expect(tpot.change).toBeCloseTo(0.2, 1);
  expect(compare('before', 'slower', '--fail-on', 'tpot=30%').status).toBe(0);
  expect(compare('before', 'slower', '--fail-on', 'ttft=5%').status).toBe(0);
  expect(compare('before', 'slower').status).toBe(0);
  expect(compare('slower', 'before', '--fail-on', 'tpot=0%').status).toBe(0);
});

test('text starts with the finding, and reports non-significance and too few launches', () => {
  const same = compare('main', 'again');
  expect(same.status, same.stderr).toBe(0);
  expect(same.stdout).toContain('bench compare · baseline main → again');
  expect(same.stdout).toContain('No change is significant.');
  const few = compare('main', 'few', '--fail-on', 'tpot=5%');
  expect(few.stdout.replaceAll(/\s+/g, ' ')).toContain('a rank test cannot reach p < 0.05');
  expect(few.stdout).toMatch(/TPOT .* WORSE/);
  expect(few.status).toBe(1);
});

test('usage errors list the valid names', () => {
  expect(compare('before', 'slower', '--fail-on', 'topt=5%')).toMatchObject({ status: 2, stdout: '' });
  expect(compare('before', 'slower', '--fail-on', 'tpot').stderr).toContain('--fail-on tpot=5%,ttft=10%');
  expect(compare('before', 'before').stderr).toContain('does not differ from itself');
  expect(compare('main', 'before').stderr).toContain('share session');
  expect(compare('before', 'nope').stderr).toContain('Baselines: main.');
});
