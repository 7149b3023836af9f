import { expect, test } from 'vitest';
import { heatCsv } from './csv.js';

test('cells of a heat map as rows: missing values are empty, commas are quoted', () => {
  const chart = {
    form: 'heat',
    x: { name: 'step', values: ['1', '2-3'] },
    y: { name: 'rank', values: ['1', '0,a'] },
    cells: [
      { x: 0, y: 1, shade: 0, lines: [{ n: 1.5, unit: 'ms' }], notes: [] },
      { x: 1, y: 0, shade: null, lines: ['no such step'], notes: [] },
    ],
  } as const;
  expect(heatCsv(chart)).toBe('rank,step,ms\r\n"0,a",1,1.5\r\n1,2-3,\r\n');
});
