import { describe, expect, it } from 'vitest';
import { figure, missing } from '../model/figure.js';
import {
  formatBytes,
  formatCount,
  formatFigure,
  formatFigureWithInterval,
  formatColumn,
  formatPartOf,
  formatFigureWithSpread,
  formatMs,
  formatNs,
  formatNumber,
  formatPart,
  formatPercent,
  formatQuantity,
  formatRange,
  formatSigned,
  formatUtilization,
  formatWithRange,
  isOverRoof,
  keepUnits,
  formatSetting,
  plural,
  formatDuration,
} from './format.js';

const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('numbers', () => {
  it.each([
    [39.84, '39.8'],
    [4.4, '4.40'],
    [3216.2, '3 216'],
    [1234567, '1 234 567'],
    [0.012345, '0.0123'],
    [9.996, '10.0'],
    [0, '0'],
    [-2.5, '−2.50'],
    [Number.NaN, '–'],
    [1.5e-7, '1.50e−7'],
  ])('%d is %s', (value, text) => expect(plain(formatNumber(value))).toBe(text));
});

describe('any number in a file becomes a short text', () => {
  const sizes = [5e-324, 1e-320, 1e-101, 1e-30, 1e300, Number.MAX_VALUE];
  it.each(['ns', 'ms', 's', 'B', 'GB', 'FLOP/s', 'parameters', 'ratio', 'percent', '1/s', 'tokens', ''])(
    'in %s',
    (unit) => {
      for (const size of sizes) {
        const measured = figure(size, unit, 'test', { n: 3, ci95: [size / 2, size * 1.5] });
        const texts = [
          formatQuantity(-size, unit),
          formatSigned(size, unit),
          formatFigureWithSpread(measured),
          ...formatColumn([size, size / 2], unit, size).texts,
        ];
        for (const text of texts) expect(text.length, text).toBeLessThan(100);
      }
    },
  );
});

describe('quantities', () => {
  it.each([
    [92 * 2 ** 20, 'B', '92.0 MiB'],
    [2.5 * 2 ** 30, 'bytes', '2.50 GiB'],
    [900, 'B', '900 B'],
    [32, 'B', '32 B'],
    [2 ** 30 - 1, 'B', '1.00 GiB'],
    [1023.4 * 2 ** 20, 'B', '1 023 MiB'],
    [2 ** 30, 'B', '1.00 GiB'],
    [21.2e9, 'B/s', '21.2 GB/s'],
    [68.4e9, 'FLOP/s', '68.4 GFLOP/s'],
    [1.979e15, 'FLOP/s', '1.98 PFLOP/s'],
    [0.0213, 'ms', '21.3 µs'],
    [0.0000907, 'ms', '91 ns'],
    [12_500, 'ms', '12.5 s'],
    [0.000_025, 's', '25.0 µs'],
    [0.95, 's', '950 ms'],
    [2.5, 's', '2.50 s'],
    [0.713, 'ratio', '71 %'],
    [71.3, '%', '71 %'],
    [0.0187, 'ratio', '1.9 %'],
    [227.1, 'tokens/s', '227 tok/s'],
    [3.2, 'FLOP/byte', '3.20 FLOP/byte'],
  ])('%d %s is %s', (value, unit, text) => expect(plain(formatQuantity(value, unit))).toBe(text));

  it('negative sizes keep their sign and prefix', () => {
    expect(plain(formatBytes(-3 * 2 ** 20))).toBe('−3.00 MiB');
    expect(plain(formatMs(-0.25))).toBe('−0.250 ms');
    expect(plain(formatPercent(-0.02))).toBe('−2.0 %');
  });
});

it('the smallest part is shown as <0.1 %, and nothing or a rounding error as 0 %', () => {
  expect([formatPart(1, 2), formatPart(1, 2000), formatPart(2, 2.6e9)].map(plain)).toEqual([
    '50 %',
    '<0.1 %',
    '<0.1 %',
  ]);
  expect([formatPart(0, 10), formatPart(1e-15, 10), formatPart(0, 0)].map(plain)).toEqual([
    '0 %',
    '0 %',
    '0 %',
  ]);
});

it('whole nanoseconds have no decimals', () => {
  expect([5, 1.5, 818, 1020].map((ns) => plain(formatNs(ns)))).toEqual([
    '5 ns',
    '1.5 ns',
    '818 ns',
    '1.02 µs',
  ]);
});

it('a column of times has one number of decimals, set by the total', () => {
  const column = (values: number[]) => formatColumn(values, 'ms', values[0]!);
  expect(column([4.0031, 0.4961, 8.9e-16, -0.02])).toEqual({
    texts: ['4.00', '0.50', '0.00', '−0.02'],
    unit: 'ms',
  });
  expect(column([12_345.6, 100])).toEqual({ texts: ['12.3', '0.1'], unit: 's' });
  expect(column([0.06, 0.0213])).toEqual({ texts: ['60.0', '21.3'], unit: 'µs' });
});

it('a column of times has no more digits than the interval of the total supports', () => {
  // A small decrease is no more 0 than a small increase.
  expect(formatColumn([-0.0004, 0.0004, 0], 'ms', 1.234).texts).toEqual(['>−0.01', '<0.01', '0.00']);
  const texts = (half: number) => formatColumn([5.881, 1.116, 0.222], 'ms', 5.881, half).texts;
  expect(texts(0.05)).toEqual(['5.88', '1.12', '0.22']);
  expect(texts(1.8)).toEqual(['5.9', '1.1', '0.2']);
  expect(formatColumn([149.1, 11.4], 'ms', 149.1, 116).texts).toEqual(['149', '11']);
});

it('a time has the same text whatever unit its document uses', () => {
  for (const [ns, text] of [
    [907.4, '907 ns'],
    [90.74, '91 ns'],
    [84_100, '84.1 µs'],
    [513_000, '0.513 ms'],
    [999_960, '1.00 ms'],
    [12_340_000, '12.3 ms'],
    [999_700_000, '1.00 s'],
    [3_254_830_000, '3.25 s'],
    [0.2, '0 ns'],
  ] as const) {
    expect(plain(formatNs(ns))).toBe(text);
    if (ns > 1) expect(plain(formatMs(ns / 1e6))).toBe(text);
    if (ns > 1) expect(plain(formatQuantity(ns / 1e9, 's'))).toBe(text);
  }
});

it('a difference has its sign unless it rounds to 0', () => {
  expect(formatSigned(0.042, 'ratio')).toBe('+4.2 %');
  expect(formatSigned(-0.12, 'ratio')).toBe('−12 %');
  expect(formatSigned(0.000_68, 'ratio')).toBe('+0.068 %');
  expect(formatSigned(0.000_068, 'ratio')).toBe('<0.01 %');
  expect(formatSigned(-0.0006, 'ratio')).toBe('−0.060 %');
  expect(formatSigned(1e-9, 'ratio')).toBe('0 %');
  expect(formatSigned(3.2, 'ms')).toBe('+3.20 ms');
  expect(formatSigned(0, 'ms')).toBe('0 ms');
});

it('a range has one unit, and one value if both ends have the same text', () => {
  expect(plain(formatRange(0.0229, 0.773, 'ms'))).toBe('0.02 to 0.77 ms');
  expect(plain(formatRange(0, 16.7, 'ms'))).toBe('0 to 17 ms');
  expect(plain(formatRange(0.001_08, 0.001_08, 'ms'))).toBe('1.08 µs');
});

it('a value has the unit of its range, and no range if the range is the value', () => {
  expect(formatWithRange(0.0573, 0.0229, 0.773, 'ms')).toEqual({
    value: '0.06 ms',
    range: '0.02 to 0.77 ms',
  });
  expect(formatWithRange(4.04, 3.32, 4.31, 'ms')).toEqual({ value: '4.0 ms', range: '3.3 to 4.3 ms' });
  expect(formatWithRange(0.001_08, 0.001_08, 0.001_08, 'ms')).toEqual({ value: '1.08 µs', range: null });
});

it('a mean count below 100 keeps one decimal', () => {
  expect([22, 2.98, 8.31, 131.4, 3720].map(formatCount).map(plain)).toEqual([
    '22',
    '3',
    '8.3',
    '131',
    '3 720',
  ]);
});

it('lines break between words, never between a number and its unit', () => {
  expect(keepUnits('takes 4.40 ms ± 0.03 (95 %, n = 12) at 8 users')).toBe(
    'takes 4.40\u00a0ms ±\u00a00.03 (95\u00a0%, n\u00a0=\u00a012) at 8 users',
  );
});

describe('figures', () => {
  it('show their spread with the digits of the value', () => {
    const e2e = figure(181.2, 'ms', 'test', { n: 12, ci95: [179.1, 183.3] });
    expect(plain(formatFigureWithSpread(e2e))).toBe('181 ms ± 2 (95 %, n = 12)');
    const launches = { ...e2e, ci95_over: { unit: 'launches', n: 3 } } as const;
    expect(plain(formatFigureWithSpread(launches))).toBe('181 ms ± 2 (95 %, n = 3 launches)');
    expect(plain(formatFigureWithInterval(e2e))).toBe('181 ms ± 2');
    const tpot = figure(4.4021, 'ms', 'test', { n: 12, ci95: [4.3701, 4.4341] });
    expect(plain(formatFigureWithSpread(tpot))).toBe('4.40 ms ± 0.03 (95 %, n = 12)');
    const rate = figure(3216, 'tok/s', 'test', { n: 5, ci95: [3176, 3256] });
    expect(plain(formatFigureWithSpread(rate))).toBe('3 216 tok/s ± 40 (95 %, n = 5)');
  });

  it('has as many digits as its interval supports, two at least', () => {
    const rounded = (value: number, half: number) =>
      plain(formatFigureWithInterval(figure(value, 's', 'test', { ci95: [value - half, value + half] })));
    expect(rounded(3.254_83, 0.6)).toBe('3.3 s ± 0.6');
    expect(rounded(5.23, 0.15)).toBe('5.23 s ± 0.15');
    expect(rounded(9.6, 0.44)).toBe('9.6 s ± 0.4');
    expect(rounded(5.23, 2.1)).toBe('5.2 s ± 2.1');
    const wide = figure(56_916, 'tok/s', 'test', { ci95: [56_916 - 267_001, 56_916 + 267_001] });
    expect(plain(formatFigureWithInterval(wide))).toBe('57 000 tok/s ± 267 000');
  });

  it('show the same number with and without the interval', () => {
    const narrow = figure(10.002, 'ms', 'test', { n: 12, ci95: [9.972, 10.032] });
    expect(plain(formatFigureWithSpread(narrow))).toBe('10.0 ms ± 0.03 (95 %, n = 12)');
    expect(plain(formatFigure({ ...narrow, ci95: undefined }))).toBe('10.0 ms');
  });

  it('a share below 0.1 % is not 0', () => {
    expect(plain(formatFigure(figure(0.000_312, 'ratio', 'test')))).toBe('0.031 %');
  });

  it('show only n without an interval', () => {
    expect(plain(formatFigureWithSpread(figure(4.4, 'ms', 'test', { n: 1 })))).toBe('4.40 ms (n = 1)');
  });

  it('show a skewed interval by its ends', () => {
    const skewed = figure(10, 'ms', 'test', { n: 20, ci95: [9.8, 12] });
    expect(plain(formatFigureWithSpread(skewed))).toBe('10.0 ms [9.8, 12.0] (95 %, n = 20)');
  });

  it('show an interval that is cut at 0 by its ends, never as a "±" that reaches below 0', () => {
    const few = figure(16, 'ms', 'test', { n: 4, ci95: [0, 31.9] });
    expect(plain(formatFigureWithSpread(few))).toBe('16 ms [0, 32] (95 %, n = 4)');
  });

  it('show a missing value as a dash', () => {
    expect(formatFigure(missing('no_roofline', 'none measured'))).toBe('–');
    expect(formatFigureWithSpread(missing('no_roofline', 'none measured'))).toBe('–');
  });

  it('mark a utilization over 100 % as invalid', () => {
    expect(plain(formatUtilization(figure(0.83, 'ratio', 'test')))).toBe('83 %');
    expect(plain(formatUtilization(figure(1.12, 'ratio', 'test')))).toBe('112 % (invalid)');
    expect(isOverRoof(figure(83, '%', 'test'))).toBe(false);
    expect(isOverRoof(figure(101, '%', 'test'))).toBe(true);
    expect(isOverRoof(missing('no_values', 'y'))).toBe(false);
  });
});

it('formats durations', () => {
  expect([0.2, 42.4, 100, 5700, 7200, 200_000].map(formatDuration)).toEqual([
    '1 s',
    '42 s',
    '2 min',
    '1 h 35 min',
    '2 h',
    '2 days',
  ]);
});

it('formats settings as typed, in their unit', () => {
  expect([formatSetting(0.5), formatSetting(64, 'MiB'), formatSetting(99.9, '%')]).toEqual([
    '0.5',
    '64 MiB',
    '99.9 %',
  ]);
});

it('formats plurals', () => {
  expect([
    plural(1, 'kernel'),
    plural(0, 'kernel'),
    plural(2, 'copy', 'copies'),
    plural(1.02, 'kernel'),
  ]).toEqual(['1 kernel', '0 kernels', '2 copies', '1 kernel']);
});

it('parts of one total have its unit and decimals', () => {
  expect([5.4, 0.011, 0.001, 0].map((ms) => formatPartOf(ms, 'ms', 5.88))).toEqual([
    '5.40 ms',
    '0.01 ms',
    '<0.01 ms',
    '0.00 ms',
  ]);
  expect([0.011, -5.4, 0].map((ms) => formatPartOf(ms, 'ms', 5.88, { signed: true }))).toEqual([
    '+0.01 ms',
    '−5.40 ms',
    '0.00 ms',
  ]);
  // Times of a stage of 61 ms ± 21 are known to 1 ms.
  expect([61.4, 2.6, 0.4].map((ms) => formatPartOf(ms, 'ms', 61.4, { half: 21 }))).toEqual([
    '61 ms',
    '3 ms',
    '<1 ms',
  ]);
});

it('one is singular in a unit that is a word', () => {
  expect([0, 1, 2].map((n) => formatQuantity(n, 'processes'))).toEqual([
    '0 processes',
    '1 process',
    '2 processes',
  ]);
  expect(formatSetting(1, 'cores')).toBe('1 core');
});

it('a change above 1 000 % is a factor, and one of nearly all is not 100 %', () => {
  const shown = (value: number) => formatSigned(value, 'ratio').replaceAll(/\s/g, ' ');
  expect([9.9, 10.9, 276, -0.9, -0.99539, -0.99999, -1].map(shown)).toEqual([
    '+990 %',
    '11.9×',
    '277×',
    '−90 %',
    '−99.53 %',
    '−99.99 %',
    '−100 %',
  ]);
});
