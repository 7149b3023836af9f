import { expect, test } from 'vitest';
import type { TraceResult } from '../model/documents/trace.js';
import { figure, missing } from '../model/figure.js';
import { plainText } from '../render/value.js';
import { driftSection } from './trace-drift.js';

const section = (change: ReturnType<typeof figure> | ReturnType<typeof missing>, steps = 20) =>
  driftSection({
    drift: [{ kind: 'decode', steps, matched_by: 'position', span_ns: 2e9, change, parts: [] }],
  } as Partial<TraceResult> as TraceResult);

/** The cells of the only row, as text. */
function cells(change: ReturnType<typeof figure> | ReturnType<typeof missing>): string[] {
  const [table] = section(change)!.blocks;
  return table?.type === 'table' ? table.rows[0]!.cells.map((cell) => plainText(cell ?? '')) : [];
}

test.each([
  [[0.01, 0.05], 'slower'],
  [[-0.05, -0.01], 'faster'],
  [[-0.01, 0.05], 'no significant trend'],
] as const)('an interval of %j is %s', ([low, high], verdict) => {
  expect(cells(figure(0.02, 'ratio', 'a test', { ci95: [low, high] }))[4]).toBe(verdict);
});

test('has no section without steps to compare; shows the reason if there are too few', () => {
  expect(section(missing('too_few_steps', 'few'), 0)).toBeNull();
  const [table] = section(missing('too_few_steps', 'few'))!.blocks;
  expect(table).toMatchObject({ rows: [{ cells: expect.arrayContaining([{ missing: 'few' }]) }] });
});

test('a change is over the run, as its slope, not per step', () => {
  const [table] = section(figure(0.059, 'ratio', 'a test', { ci95: [0.01, 0.1] }))!.blocks;
  expect(table?.type === 'table' && table.columns[3]!.head).toBe('change over the run');
});
