import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { figure } from '../model/figure.js';
import { isShownChange } from './what-if-bars.js';
import { explainSession } from '../advice/explain/explain.js';
import { whatIf } from '../advice/what-if/what-if.js';
import { throughputSession } from '../facts/bench/test-bench-session.js';
import { terminalView } from '../render/terminal/view.js';
import { testHome } from '../session/test-folder.js';
import { pointLabel } from '../vocabulary/bench.js';
import { whatIfView } from './what-if.js';

const home = testHome();

test('the reason for no prediction is given once, with all points', async () => {
  const { session, points } = await throughputSession(home, { growth: 0 });
  const [whatIfDocument, explained] = [
    await whatIf(session, ['batch-size=8']),
    await explainSession(session),
  ];
  expect(whatIfDocument.data.stages.length).toBeGreaterThan(2);
  const text = stripVTControlCharacters(terminalView(whatIfView(whatIfDocument, explained), { width: 1000 }));
  expect(text.split('no prediction')).toHaveLength(2);
  for (const { point } of points) expect(text).toContain(pointLabel(point));
});

test('a bar that changes by less than its shown digits is left out', () => {
  const time = figure(6.5, 'ms', 'measured', { n: 2, ci95: [5.3, 7.7] });
  const bar = (before_ms: number, after_ms: number) => ({ id: 'x', before_ms, after_ms, explanation: '' });
  expect(isShownChange(bar(3.86, 3.89), time)).toBe(false);
  expect(isShownChange(bar(0.42, 0.22), time)).toBe(true);
});
