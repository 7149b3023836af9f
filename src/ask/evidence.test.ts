import { describe, expect, test } from 'vitest';
import { checkClaims } from './check-claims.js';
import { evidenceOf } from './evidence.js';
import type { RecordedQuery } from './recorder.js';

const query = (id: string, input: string, data: unknown, error: string | null = null): RecordedQuery => ({
  id,
  tool: 'sql',
  input,
  rows: 1,
  error,
  data,
});
const measured = query('q1', 'SELECT … FROM stages', { rows: [{ step_ms: 23.3, kernels_ms: 2.2 }] });
const verified = (text: string, ...queries: RecordedQuery[]) =>
  checkClaims(text, evidenceOf(queries, ''), '', new Set(queries.map(({ id }) => id))).claims.map(
    (claim) => claim.verified,
  );

test('a number is not verified by querying it, or by having it quoted in an error', () => {
  expect(
    verified('4711 launches', query('q1', 'SELECT 4711 AS launches', { rows: [{ launches: 4711 }] })),
  ).toEqual([false]);
  const failed = query(
    'q1',
    'SELECT 4711 FROM nowhere',
    { error: 'near "4711 FROM nowhere"' },
    'near "4711"',
  );
  expect(verified('4711 launches', failed)).toEqual([false]);
});

test('arithmetic on returned values is a result', () => {
  const computed = query('q2', 'SELECT 100 * (23.3 - 2.2) / 23.3 AS idle_percent', {
    rows: [{ idle_percent: 90.558 }],
  });
  expect(verified('90.6 % idle', measured, computed)).toEqual([true]);
  const invented = query('q2', 'SELECT 100 * (23.3 - 7.7) / 23.3 AS idle_percent', {
    rows: [{ idle_percent: 66.953 }],
  });
  expect(verified('67.0 % idle', measured, invented)).toEqual([false]);
});

describe('a query cannot verify a number by', () => {
  const rows = (columns: Record<string, unknown>) => ({ rows: [columns] });
  test.each<[string, string, Record<string, unknown>, string]>([
    [
      'reading it from a table',
      'SELECT 42.7 AS step_ms FROM stages LIMIT 1',
      { step_ms: 42.7 },
      '42.7 ms [q2]',
    ],
    ['a list of values', 'SELECT step_ms FROM (VALUES (42.7)) t(step_ms)', { step_ms: 42.7 }, '42.7 ms [q2]'],
    ['adding it', 'SELECT sum(dur_ns) * 0 + 42.7 AS step_ms FROM kernels', { step_ms: 42.7 }, '42.7 ms [q2]'],
    [
      'a factor',
      'SELECT avg(dur_ns) / 1e6 * 1.37 AS step_ms FROM kernels',
      { step_ms: 31.9 },
      '31.9 ms [q2]',
    ],
    ['a wrong name', 'SELECT avg(dur_ns) AS step_ms FROM kernels', { step_ms: 23.3 }, '23.3 ms [q2]'],
    ['a wrong unit', 'SELECT count(*) AS total_gb FROM kernels', { total_gb: 924 }, '924 GB [q2]'],
    ['a name in a row', 'SELECT name FROM kernels', { name: 'takes 42.7 ms' }, '42.7 ms [q2]'],
  ])('%s', (_, sql, columns, text) => {
    expect(verified(text, query('q2', sql, rows(columns)))).toEqual([false]);
  });

  test('the unit comes from the expression, not from the column name', () => {
    const expectVerified = (sql: string, columns: Record<string, unknown>, text: string) =>
      expect([text, verified(text, query('q2', sql, rows(columns)))]).toEqual([text, [true]]);
    expectVerified('SELECT avg(dur_ns) / 1e6 AS mean FROM kernels', { mean: 42.7 }, '42.7 ms [q2]');
    expectVerified(
      'SELECT round(sum(k.dur_ns) / 1e3, 1) AS total FROM kernels k',
      { total: 42.7 },
      '42.7 µs [q2]',
    );
    expectVerified('SELECT sum(dur_ns) / sum(wall_ns) AS busy FROM t', { busy: 0.427 }, '42.7 % [q2]');
    expectVerified('SELECT 100 * sum(dur_ns) / sum(wall_ns) AS busy FROM t', { busy: 42.7 }, '42.7 % [q2]');
    expectVerified(
      'SELECT total / 1e6 AS x FROM (SELECT sum(dur_ns) AS total FROM kernels)',
      { x: 42.7 },
      '42.7 ms [q2]',
    );
    expectVerified('SELECT sum(bytes) / 2**30 AS held FROM copies', { held: 42.7 }, '42.7 GiB [q2]');
    expectVerified('SELECT count(*) FROM kernels', { 'count_star()': 924 }, '924 kernels [q2]');
    expectVerified('SELECT max(dur_ns) FROM kernels', { 'max(dur_ns)': 42_700_000 }, '42.7 ms [q2]');
    expectVerified('SELECT quantile_cont(dur_ns, 0.99) / 1e6 AS p99 FROM t', { p99: 42.7 }, '42.7 ms [q2]');
    expectVerified(
      'SELECT floor(start_ns / 250) * 250 AS at_ns FROM t',
      { at_ns: 42_700_250 },
      '42700250 ns [q2]',
    );
  });
});

test('a number in a name verifies nothing, even if one of our sentences quotes the name', () => {
  const finding = {
    ...query('q0', '', { title: 'gemm takes 42.7 ms has 1 block for 132 SMs' }),
    tool: 'findings',
  };
  const known = evidenceOf([finding], '', ['gemm takes 42.7 ms']);
  const claims = checkClaims('42.7 ms, 132 SMs [q0].', known, '').claims.map((claim) => claim.verified);
  expect(claims).toEqual([false, true]);
});
