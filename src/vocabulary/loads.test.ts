import { expect, test } from 'vitest';
import { loadLabel, sloLabel } from './loads.js';

const load = { concurrency: null, requests: 4, warmup_requests: 0, ramp_s: 0, seconds: null };

test('a rate is shown as it was set; the computed rate of a trace has the digits of a measurement', () => {
  const labelOf = (kind: 'poisson' | 'trace') => loadLabel({ ...load, kind, rate_per_s: 10 / 3 });
  expect([labelOf('poisson'), labelOf('trace')].map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
    '3.333 req/s (Poisson)',
    '3.33 req/s (trace)',
  ]);
});

test('the label of a ramp has both ends, because 1 to 6 and 6 to 1 have one mean', () => {
  const label = (ends: object) =>
    loadLabel({ ...load, kind: 'ramp', rate_per_s: 3.5, ...ends }).replaceAll('\u00a0', ' ');
  expect([label({ from_per_s: 1, to_per_s: 6 }), label({ from_per_s: 6, to_per_s: 1 }), label({})]).toEqual([
    '1 → 6 req/s (ramp)',
    '6 → 1 req/s (ramp)',
    '3.5 req/s (ramp)',
  ]);
});

test('an SLO is met by at least its share of requests', () => {
  const slo = { ttft_ms: 200, tpot_ms: null, e2e_ms: null };
  expect(sloLabel({ ...slo, share: 0.99 }).replaceAll('\u00a0', ' ')).toBe(
    'TTFT ≤ 200 ms for at least 99 % of requests',
  );
  expect(sloLabel({ ...slo, share: 1 })).toContain('for all requests');
});
