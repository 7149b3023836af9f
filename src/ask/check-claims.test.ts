import { describe, expect, test } from 'vitest';
import { checkClaims } from './check-claims.js';
import { numbersIn, valuesOf } from './values.js';

describe('numbers of a text', () => {
  test('with their units; names, versions, citations and code are none', () => {
    const text =
      'A decode step takes 23.31 ms, 91.5 % idle [q12]: 1 072 launches of float16 GEMMs on an H200 (torch 2.11.0, `batch=8`), −0.5 µs.';
    expect(numbersIn(text).map(({ text: one }) => one.trim())).toEqual([
      '23.31 ms',
      '91.5 %',
      '1 072',
      '−0.5 µs',
    ]);
  });
  test('thousands, exponents and rounding', () => {
    expect(numbersIn('3,720,000 rows, 1.5e3 B, 20 GB/s')).toMatchObject([
      { value: 3_720_000, unit: null, rounding: 0.5 },
      { value: 1500, rounding: 50 },
      { value: 20, rounding: 0.5, unit: { dimension: 'rate' } },
    ]);
  });
});

describe('claims', () => {
  const known = [
    ...valuesOf([{ kind: 'decode', w_ns: 23_312_000, idle_share: 0.9153, launches: 924 }], 'q1'),
    ...valuesOf({ measured_ms: { value: 2.2, unit: 'ms' }, rows: [[7, 0.51]] }, 'q2'),
  ];
  const check = (answer: string, question = '') => checkClaims(answer, known, question);

  test('returned by a query, in whatever unit and to the digits shown', () => {
    const { claims, text } = check('It takes 23.3 ms (91.5 % idle, 924 launches), kernels 2.2 ms.');
    expect(claims.map(({ verified, queries }) => [verified, queries])).toEqual([
      [true, ['q1']],
      [true, ['q1']],
      [true, ['q1']],
      [true, ['q2']],
    ]);
    expect(text).not.toContain('unverified');
  });

  test('a number that nothing returned is marked where it stands', () => {
    const { claims, text } = check('It takes 24.3 ms, of which 91.5 % idle.');
    expect(claims.map(({ verified }) => verified)).toEqual([false, true]);
    expect(text).toBe('It takes 24.3 ms (unverified), of which 91.5 % idle.');
    // A share is no time, and a wrong digit no rounding.
    expect(check('924 ms').claims[0]!.verified).toBe(false);
    expect(check('23.35 ms').claims[0]!.verified).toBe(false);
  });

  test('ratio, difference and sum of two numbers of cited queries; not without the citation', () => {
    const { claims } = check('The step takes 10.6 times its kernels [q1, q2]. It waits 21.1 ms [q1] [q2].');
    expect(claims.map(({ how }) => how)).toEqual(['ratio', 'difference']);
    expect(check('The step takes 10.6 times its kernels.').claims[0]!.verified).toBe(false);
  });

  test("the question's own numbers, ordinals and code are no claims", () => {
    const { claims } = check(
      '1. At batch 32 use `batch_size=64`.\n2. Nothing else.',
      'What does batch 32 give?',
    );
    expect(claims).toMatchObject([{ text: '32', verified: true, how: 'question' }]);
  });
});
