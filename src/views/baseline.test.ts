import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { Baseline, BaselineCheck, BaselineComparison } from '../model/documents/baseline.js';
import { terminalView } from '../render/terminal/view.js';
import { baselineCheckView, baselineView } from './baseline.js';

const session = {
  id: '20261121-064200-base',
  name: null,
  title: 't',
  kind: 'profile',
  started_at: '2026-11-21T06:42:00.000Z',
};
const comparison: BaselineComparison = {
  id: 'tpot_ms',
  point: null,
  name: 'tpot_ms',
  unit: 'ms',
  better: 'lower',
  baseline: 13.7,
  current: 15.3,
  change: 0.117,
  change_ci95: [0.096, 0.14],
  p: 0.001,
  p_adjusted: 0.002,
  p_permutation: 0.03,
  degrees_of_freedom: 6,
  basis: 'launches',
  n: [4, 4],
  verdict: 'regression',
  text: 'worse: +12 % (+9.6 % to +14 %), more than the 5 % tolerated',
};
const withoutSpread: BaselineComparison = {
  ...comparison,
  id: 'a_metric_of_a_load_point_with_a_very_long_name_indeed',
  change_ci95: null,
  p: null,
  p_adjusted: null,
  p_permutation: null,
  degrees_of_freedom: null,
  n: [4, 1],
  verdict: 'no_spread',
  text: '',
};
const check: BaselineCheck = {
  baseline: { name: 'main', set_at: '2026-11-20T00:00:00.000Z', sessions: [session] },
  sessions: [{ ...session, id: 'x', name: 'now\u001b[2J' }],
  tolerance: 0.05,
  within_process: false,
  result: 'regression',
  headline: 'Regression: TPOT.',
  comparisons: [comparison, withoutSpread],
  differences: [
    { label: 'cpu model', part: 'hardware', baseline: 'A', current: null },
    { label: 'driver', part: 'software', baseline: '580', current: '570' },
  ],
};

test('a check shows the finding, figures with intervals, and reasons in 80 columns, without control characters', () => {
  const text = stripVTControlCharacters(
    terminalView(baselineCheckView(document('baseline-check', '1.0', check)), { width: 80 }),
  );
  const lines = text.split('\n');
  expect(lines.every((line) => line.length <= 80)).toBe(true);
  expect(lines[0]).toMatch(/baseline check · main \(2026-11-20\) → now$/);
  expect(lines[2]).toBe('  Regression: TPOT.');
  expect(text).toMatch(/TPOT +13\.7 ms +15\.3 ms +\+12 % +\+9\.6 % to \+14 % +0\.0020 +4, 4 +REGRESSION/);
  expect(text).toContain('TPOT: worse: +12 % (+9.6 % to +14 %), more than the 5 % tolerated');
  expect(text).toMatch(
    /Some metrics have no verdict: the spread between launches of a side is\s+unknown\. Set and check/,
  );
  expect(text).toMatch(/Holm's correction\s+for 1 metric/);
  expect(text).toMatch(/p +n +verdict/);
  // What one side does not record need not differ.
  expect(text).toMatch(/driver +580 +570\n\n +Recorded on one side only\n\n.*\n +cpu model +A +–/);
});

test('baseline set reports how many of its metrics can be tested', () => {
  const metric = {
    unit: 'ms',
    better: 'lower' as const,
    point: null,
    interval: null,
    source: 's',
    value: 13.7,
  };
  const baseline: Baseline = {
    name: 'main',
    set_at: '2026-11-20T00:00:00.000Z',
    sessions: [session],
    identity: [],
    metrics: [
      { ...metric, id: 'tpot_ms', name: 'tpot_ms', basis: 'launches', values: [13, 14] },
      { ...metric, id: 'ttft_ms', name: 'ttft_ms', basis: 'repeats', values: [1, 2, 3] },
    ],
  };
  const text = terminalView(
    baselineView(document('baseline', '1.0', baseline), '/home/x/baselines/main.json'),
    {
      width: 80,
    },
  );
  expect(text).toMatch(/TPOT +13\.7 ms +2 +launches/);
  expect(text).toMatch(/TTFT +13\.7 ms +3 +repeats, one process/);
  expect(text).toMatch(/1 of 2 metrics have no spread between launches/);
  expect(text).toContain('/home/x/baselines/main.json');
});
