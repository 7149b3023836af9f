import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { testExplain } from '../test-explain.js';
import { testServing } from '../test-serving.js';
import { servingSummary } from './serving.js';

const shown = (columns: number) =>
  stripVTControlCharacters(servingSummary(testServing(), { width: columns, explain: testExplain() }));

test('sentences and the waterfall of a request come before the loads, within the columns of the terminal', () => {
  const text = shown(80);
  const found = ['A decode step takes 23.3 ms', 'host.program', 'TTFT p50', 'It saturates at'].map((part) =>
    text.indexOf(part),
  );
  expect(found[0]).toBeGreaterThan(0);
  expect(found).toEqual(found.toSorted((a, b) => a - b));
  for (const columns of [80, 110])
    for (const line of shown(columns).split('\n'))
      expect([...line].length, line).toBeLessThanOrEqual(columns);
});
