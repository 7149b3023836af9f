import { expect, test } from 'vitest';
import { testHome } from '../../session/test-folder.js';
import { traceScope } from '../derived/scope.js';
import { readNamedOperators, readOperatorOrigins } from './operator-instances.js';
import { fixture, imported } from './test-import.js';

test('operators by name and by origin sum to all operators, and their kernels equal a SQL join', async () => {
  const session = await imported(testHome(), 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
  const database = await session.connect();
  const scope = await traceScope(database, session.manifest);
  const named = await readNamedOperators(scope);
  const origins = await readOperatorOrigins(scope);
  const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const [totals] = await database.query<{ count: number; own: number; total: number }>(
    'SELECT count(*) AS count, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS own, sum(dur_ns)::DOUBLE AS total FROM ops',
  );
  expect(named.length).toBeGreaterThan(10);
  expect(sumOf(named.map(({ count }) => count))).toBe(totals!.count);
  expect(sumOf(named.map(({ self_ns }) => self_ns))).toBe(totals!.own);
  expect(sumOf(named.map(({ total_ns }) => total_ns))).toBe(totals!.total);
  expect(sumOf(named.map(({ share }) => share))).toBeCloseTo(1, 9);
  expect(sumOf(origins.map(({ count }) => count))).toBe(totals!.count);
  expect(sumOf(origins.map(({ total_ns }) => total_ns))).toBe(totals!.own);
  const [launched] = await database.query<{ count: number; ns: number }>(
    'SELECT count(*) AS count, sum(dur_ns)::DOUBLE AS ns FROM kernels WHERE op_id IN (SELECT op_id FROM ops)',
  );
  expect(launched!.count).toBeGreaterThan(0);
  expect(sumOf(named.map(({ kernels }) => kernels))).toBe(launched!.count);
  expect(sumOf(named.map(({ device_ns }) => device_ns))).toBe(launched!.ns);
});
