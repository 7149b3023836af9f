import { expect, it } from 'vitest';
import { figure, mapFigure, missing } from './figure.js';
import { halfInterval } from './half-interval.js';

const rate = (ms: number): number => 1000 / ms;

it('1/x of an interval swaps its ends', () => {
  const from = figure(10, 'ms', 'test', { n: 3, ci95: [8, 12.5] });
  expect(mapFigure(from, 'tok/s', 'test', rate)).toEqual(
    figure(100, 'tok/s', 'test', { n: 3, ci95: [80, 125] }),
  );
});

it('an interval across the pole of 1/x is left out, since its image would not contain the value', () => {
  const from = figure(10, 'ms', 'test', { n: 2, ci95: [-5, 25] });
  expect(mapFigure(from, 'tok/s', 'test', rate)).toEqual(figure(100, 'tok/s', 'test', { n: 2 }));
});

it('a missing figure keeps its reason', () => {
  expect(mapFigure(missing('no_values', 'why'), 'tok/s', 'test', rate)).toEqual(missing('no_values', 'why'));
});

it('the half width of an interval reaches to its farther end, also with the other end cut at 0', () => {
  expect(halfInterval(figure(10, 'ms', 'test', { ci95: [8, 12] }))).toBe(2);
  expect(halfInterval(figure(5, 'ms', 'test', { ci95: [0, 11] }))).toBe(6);
  expect(halfInterval(figure(5, 'ms', 'test'))).toBeNull();
  expect(halfInterval(missing('no_values', 'why'))).toBeNull();
});
