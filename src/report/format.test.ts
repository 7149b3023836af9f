import { describe, expect, it } from 'vitest';
import { figure, missing } from '../model/figure.js';
import {
  formatBytes,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatMs,
  formatMsColumn,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatUtilization,
  isAccountingFault,
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

describe('quantities', () => {
  it.each([
    [92 * 2 ** 20, 'B', '92.0 MiB'],
    [2.5 * 2 ** 30, 'bytes', '2.50 GiB'],
    [900, 'B', '900 B'],
    [21.2e9, 'B/s', '21.2 GB/s'],
    [68.4e9, 'FLOP/s', '68.4 GFLOP/s'],
    [1.979e15, 'FLOP/s', '1.98 PFLOP/s'],
    [0.0213, 'ms', '21.3 µs'],
    [0.0000907, 'ms', '90.7 ns'],
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

it('a column of times has one number of decimals, the largest setting it', () => {
  expect(formatMsColumn([4.0031, 0.4961, 8.9e-16, -0.02]).map(plain)).toEqual([
    '4.003',
    '0.496',
    '0.000',
    '−0.020',
  ]);
  expect(formatMsColumn([12_345.6, 1]).map(plain)).toEqual(['12 345.6', '1.0']);
});

describe('figures', () => {
  it('carry their spread in the digits of the value', () => {
    const e2e = figure(181.2, 'ms', 'test', { n: 12, ci95: [179.1, 183.3] });
    expect(plain(formatFigureWithSpread(e2e))).toBe('181 ms ± 2 (95 %, n = 12)');
    expect(plain(formatFigureWithInterval(e2e))).toBe('181 ms ± 2');
    const tpot = figure(4.4021, 'ms', 'test', { n: 12, ci95: [4.3701, 4.4341] });
    expect(plain(formatFigureWithSpread(tpot))).toBe('4.40 ms ± 0.03 (95 %, n = 12)');
    const rate = figure(3216, 'tok/s', 'test', { n: 5, ci95: [3176, 3256] });
    expect(plain(formatFigureWithSpread(rate))).toBe('3 216 tok/s ± 40 (95 %, n = 5)');
  });

  it('is the same number with and without its interval', () => {
    const narrow = figure(10.002, 'ms', 'test', { n: 12, ci95: [9.972, 10.032] });
    expect(plain(formatFigureWithSpread(narrow))).toBe('10.0 ms ± 0.03 (95 %, n = 12)');
    expect(plain(formatFigure({ ...narrow, ci95: undefined }))).toBe('10.0 ms');
  });

  it('a share below 0.1 % is not 0', () => {
    expect(plain(formatFigure(figure(0.000_312, 'ratio', 'test')))).toBe('0.031 %');
  });

  it('show n alone when there is no interval', () => {
    expect(plain(formatFigureWithSpread(figure(4.4, 'ms', 'test', { n: 1 })))).toBe('4.40 ms (n = 1)');
  });

  it('give a skewed interval as its ends', () => {
    const skewed = figure(10, 'ms', 'test', { n: 20, ci95: [9.8, 12] });
    expect(plain(formatFigureWithSpread(skewed))).toBe('10.0 ms [9.8, 12.0] (95 %, n = 20)');
  });

  it('give an interval that is cut at 0 as its ends, never as a "±" that reaches below', () => {
    const few = figure(16, 'ms', 'test', { n: 4, ci95: [0, 31.9] });
    expect(plain(formatFigureWithSpread(few))).toBe('16.0 ms [0.0, 31.9] (95 %, n = 4)');
  });

  it('missing is a dash', () => {
    expect(formatFigure(missing('no_roofline', 'none measured'))).toBe('–');
    expect(formatFigureWithSpread(missing('no_roofline', 'none measured'))).toBe('–');
  });

  it('a utilisation over 100 % is called an accounting fault', () => {
    expect(plain(formatUtilization(figure(0.83, 'ratio', 'test')))).toBe('83 %');
    expect(plain(formatUtilization(figure(1.12, 'ratio', 'test')))).toBe('112 % (accounting fault)');
    expect(isAccountingFault(figure(83, '%', 'test'))).toBe(false);
    expect(isAccountingFault(figure(101, '%', 'test'))).toBe(true);
    expect(isAccountingFault(missing('x', 'y'))).toBe(false);
  });
});
