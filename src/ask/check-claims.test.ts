import { describe, expect, test } from 'vitest';
import { checkClaims } from './check-claims.js';
import { valuesOf } from './values.js';
import { numbersIn } from './written-numbers.js';

describe('numbers of a text', () => {
  test('have their units; names, versions, citations and code are ignored', () => {
    const text =
      'A decode step takes 23.31 ms, 91.5 % idle [q12]: 1 072 launches of float16 GEMMs on an H200 (torch 2.11.0, `batch=8`), −0.5 µs.';
    expect(numbersIn(text).map(({ text: numberText }) => numberText.trim())).toEqual([
      '23.31 ms',
      '91.5 %',
      '1 072',
      '−0.5 µs',
    ]);
  });
  test('thousands separators, exponents and rounding are read', () => {
    expect(numbersIn('3,720,000 rows, 1.5e3 B, 20 GB/s')).toMatchObject([
      { value: 3_720_000, unit: null, rounding: 0.5 },
      { value: 1500, rounding: 50 },
      { value: 20, rounding: 0.5, unit: { dimension: 'bytes_rate' } },
    ]);
  });
  // Notations in which a number might not be recognized.
  test.each<[string, [number, string | null][]]>([
    [
      '10-23 ms',
      [
        [10, 'time'],
        [23, 'time'],
      ],
    ],
    [
      'between 10 and 23 ms',
      [
        [10, 'time'],
        [23, 'time'],
      ],
    ],
    ['23 ms/token', [[23, 'time']]],
    ['`23 ms` with `batch=8`', [[23, 'time']]],
    [
      '23 milliseconds, 40 percent',
      [
        [23, 'time'],
        [40, 'ratio'],
      ],
    ],
    ['twenty-three milliseconds', [[23, 'time']]],
    ['ten times slower', [[10, 'ratio']]],
    ['10x faster', [[10, 'ratio']]],
    ['3.7M kernels', [[3_700_000, null]]],
    ['２３ ms', [[23, 'time']]],
    ['[23 ms]', [[23, 'time']]],
    [
      '3 GB/s is not 3 GFLOP/s',
      [
        [3, 'bytes_rate'],
        [3, 'flop_rate'],
      ],
    ],
    [
      '1.1B parameters in 2.2 GB',
      [
        [1.1, 'plain'],
        [2.2, 'bytes'],
      ],
    ],
    ['started 2026-11-21 06:45, see [1], GPT-2 on sm_90', []],
  ])('%s', (text, expected) => {
    expect(numbersIn(text).map(({ value, unit }) => [value, unit?.dimension ?? null])).toEqual(expected);
  });
});

describe('claims', () => {
  const known = [
    ...valuesOf([{ kind: 'decode', w_ns: 23_312_000, idle_share: 0.9153, launches: 924 }], 'q1'),
    ...valuesOf({ measured_ms: { value: 2.2, unit: 'ms' }, rows: [[7, 0.51]] }, 'q2'),
  ];
  const check = (answer: string, question = '') => checkClaims(answer, known, question);

  test('are verified if returned by a query, in any unit and to the digits shown', () => {
    const { claims, text } = check('It takes 23.3 ms (91.5 % idle, 924 launches), kernels 2.2 ms.');
    expect(claims.map(({ verified, queries }) => [verified, queries])).toEqual([
      [true, ['q1']],
      [true, ['q1']],
      [true, ['q1']],
      [true, ['q2']],
    ]);
    expect(text).not.toContain('unverified');
  });

  test('are marked in the text if no query returned the number', () => {
    const { claims, text } = check('It takes 24.3 ms, of which 91.5 % idle.');
    expect(claims.map(({ verified }) => verified)).toEqual([false, true]);
    expect(text).toBe('It takes 24.3 ms (unverified), of which 91.5 % idle.');
    // A share is not a time, and a wrong digit is not a rounding.
    expect(check('924 ms').claims[0]!.verified).toBe(false);
    expect(check('23.35 ms').claims[0]!.verified).toBe(false);
  });

  test('verify a ratio, difference or sum of two numbers of cited queries, not without the citation', () => {
    const { claims } = check('The step takes 10.6 times its kernels [q1, q2]. It waits 21.1 ms [q1] [q2].');
    expect(claims.map(({ derivation }) => derivation)).toEqual(['ratio', 'difference']);
    expect(check('The step takes 10.6 times its kernels.').claims[0]!.verified).toBe(false);
  });

  test('a value of unknown unit does not verify a number with a unit, nor does one of another unit', () => {
    const rows = valuesOf({ rows: [{ duration: 23.3, waiting: 0.915, sms: 132 }] }, 'q1');
    const verified = (text: string) => checkClaims(text, rows, '').claims.map((claim) => claim.verified);
    expect(verified('It takes 23.3 ms [q1].')).toEqual([false]);
    expect(verified('It waits 91.5 % of it [q1].')).toEqual([false]);
    expect(verified('132 GB/s [q1], 132 W [q1].')).toEqual([false, false]);
    // Without a unit the number is the value itself.
    expect(verified('A duration of 23.3, on 132 SMs [q1].')).toEqual([true, true]);
    expect(check('It moves 924 bytes, 924 µs, 924 % [q1].').claims.map((claim) => claim.verified)).toEqual([
      false,
      false,
      false,
    ]);
    // The 32 in the question is a batch size, not a time.
    expect(check('It takes 32 ms.', 'What does batch 32 give?').claims[0]!.verified).toBe(false);
  });

  test('with many values some number matches by chance, so that a match does not verify', () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({ step_ms: 2 + (i * 2) / 199 }));
    const many = valuesOf({ rows }, 'q1');
    const verified = (text: string) => checkClaims(text, many, '').claims[0]!.verified;
    // Every tenth between 2 and 4 was returned, cited or not.
    expect(verified('It takes 3.1 ms [q1].')).toBe(false);
    // The last row, to more digits than a chance match has.
    expect(verified('The slowest takes 4.000 ms [q1].')).toBe(true);
    const few = valuesOf({ rows: [{ a_ms: 1.3, b_ms: 2.9, c_ms: 7.7, d_ms: 0.4, e_ms: 5.6 }] }, 'q1');
    // 20 pairs with four results each: two digits do not prove a ratio; with two values they do.
    expect(checkClaims('2.2 times [q1].', few, '').claims[0]!.verified).toBe(false);
    const two = valuesOf({ rows: [{ a_ms: 1.3, b_ms: 2.9 }] }, 'q1');
    expect(
      checkClaims('2.2 times, 55 % less [q1].', two, '').claims.map(({ derivation }) => derivation),
    ).toEqual(['ratio', 'ratio']);
  });

  test('two digits of a percentage are verified by the cited query, however many values it returned', () => {
    const bars = Array.from({ length: 20 }, (_, i) => ({ share: i / 50 }));
    const shares = valuesOf({ bars }, 'q0');
    expect(checkClaims('Launching takes 26 % [q0].', shares, '').claims[0]!.verified).toBe(true);
    expect(checkClaims('Launching takes 26 %.', shares, '').claims[0]!.verified).toBe(false);
    expect(checkClaims('Launching takes 27 % [q0].', shares, '').claims[0]!.verified).toBe(false);
  });

  test('a small number is accepted if its sentence cites the query', () => {
    expect(check('7 kernels [q2].').claims[0]).toMatchObject({ verified: true, queries: ['q2'] });
    const rows = valuesOf({ rows: [{ n: 4 }, { n: 5 }, { n: 6 }, { n: 7 }, { n: 8 }] }, 'q1');
    expect(checkClaims('It has 6 streams.', rows, '').claims[0]!.verified).toBe(false);
    expect(checkClaims('It has 6 streams [q1].', rows, '').claims[0]!.verified).toBe(true);
  });

  test('a citation of an unknown query is marked', () => {
    expect(check('It takes 23.3 ms [q7].').text).toBe('It takes 23.3 ms [q7 (no such query)].');
    expect(check('It takes 23.3 ms [q1, q7].').claims.at(-1)).toEqual({
      text: 'q7',
      verified: false,
      queries: [],
      derivation: null,
    });
  });

  test('numbers of the question, ordinals and code are not claims', () => {
    const { claims } = check(
      '1. At batch 32 use `batch_size=64`.\n2. Nothing else.',
      'What does batch 32 give?',
    );
    expect(claims).toMatchObject([{ text: '32', verified: true, derivation: 'question' }]);
  });
});

// With quadratic time 100 kB took 41 s, and each of these texts is twice as long: far longer than a test may take.
describe('a long text is checked in linear time (100 kB took 41 s with quadratic time)', () => {
  const cited = Array.from(
    { length: 30 },
    (_, i) => ({ value: i * 1.37, dimension: 'time', query: 'q1' }) as const,
  );
  test.each<[string, string, number | null]>([
    ['numbers of one sentence', Array.from({ length: 30_000 }, (_, i) => `${i}.${i} ms`).join(' '), 30_000],
    [
      'one with a citation',
      `${Array.from({ length: 30_000 }, (_, i) => `${i}.${i} ms`).join(' ')} [q1]`,
      30_000,
    ],
    [
      'numbers of a line each',
      Array.from({ length: 10_000 }, (_, i) => `${i}.${i} ms [q${i}]`).join('\n'),
      null,
    ],
    ['numbers in code', '`12 ms` '.repeat(12_000), 12_000],
    ['a long row of digits', `${'1'.repeat(200_000)}x`, 0],
    ['a row of groups', `${'111 '.repeat(50_000)}111x`, null],
    ['a row of versions', '1.'.repeat(100_000), 0],
    ['numbers in words', `${'one '.repeat(50_000)}two`, 0],
    ['brackets', '[q1 '.repeat(50_000), 0],
    ['unfinished code', '`1 ms'.repeat(20_000), null],
  ])('%s', (_, text, count) => {
    const { claims } = checkClaims(text, cited, '', new Set(['q1']));
    if (count !== null) expect(claims.length).toBe(count);
  });

  test('against many values', () => {
    const many = Array.from(
      { length: 200_000 },
      (_, i) => ({ value: i * 7.13, dimension: 'time', query: `q${i % 80}` }) as const,
    );
    const text = Array.from({ length: 2000 }, (_, i) => `${i}.${i} ms [q${i % 80}].`).join(' ');
    expect(checkClaims(text, many, '').claims.length).toBe(2000);
  });
});
