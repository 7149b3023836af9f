import { expect, test } from 'vitest';
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
  checkClaims(text, evidenceOf(queries, ''), '').claims.map((claim) => claim.verified);

test('a number cannot be made a result by asking for it, or by having it quoted in an error', () => {
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

test('arithmetic on what was returned is a result', () => {
  const worked = query('q2', 'SELECT 100 * (23.3 - 2.2) / 23.3 AS idle_percent', {
    rows: [{ idle_percent: 90.558 }],
  });
  expect(verified('90.6 % idle', measured, worked)).toEqual([true]);
  const invented = query('q2', 'SELECT 100 * (23.3 - 7.7) / 23.3 AS idle_percent', {
    rows: [{ idle_percent: 66.953 }],
  });
  expect(verified('67.0 % idle', measured, invented)).toEqual([false]);
});
