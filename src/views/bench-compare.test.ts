import { expect, test } from 'vitest';
import { compareSides } from '../compare/metrics/compare.js';
import { document } from '../model/document.js';
import type { SampledMetric } from '../model/documents/baseline.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { rawValue } from '../render/value.js';
import type { Table } from './block.js';
import { benchCompareView } from './bench-compare.js';

const hostile = '<img src=x>\u001b[2J';
const metric = (values: number[]): SampledMetric => ({
  id: `${hostile} · tpot_ms`,
  point: hostile,
  name: 'tpot_ms',
  unit: 'ms',
  better: 'lower',
  value: values.reduce((sum, value) => sum + value, 0) / values.length,
  basis: 'launches',
  values,
  interval: null,
  source: 'iterations',
});
const side = (selector: string, values: number[]) => ({
  side: { selector, baseline: null, variant: null, sessions: [] },
  identity: [{ label: 'cpu model', part: 'hardware', value: selector }],
  metrics: [metric(values)],
});

test('shows both values, the change with interval and p, and the verdict; names from files cannot inject anything', () => {
  const comparison = compareSides(side('a', [10, 10.1, 9.9, 10]), side('b', [12, 12.1, 11.9, 12]), {
    gates: [],
    withinProcess: false,
  });
  const view = benchCompareView(document('bench-compare', '1.0', comparison));
  const table = view.sections
    .find(({ id }) => id === 'metrics')!
    .blocks.find((block) => block.type === 'table') as Table;
  const [row] = table.rows;
  const values = Object.fromEntries(table.columns.map(({ id }, i) => [id, rawValue(row!.cells[i]!)]));
  const [firstComparison] = comparison.comparisons;
  expect(values).toMatchObject({ metric: 'TPOT', base: 10, new: 12, verdict: 'WORSE' });
  expect([values['change'], values['p']]).toEqual([firstComparison!.change, firstComparison!.p_adjusted]);
  for (const width of [80, 120]) {
    const text = terminalView(view, { width, level: 2 });
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
    expect(Math.max(...text.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(width);
    expect(text).toMatch(/cpu model +a +b/);
  }
  expect(pageOfView(view, { clientScript: '' })).not.toContain('<img');
});

test('a change that differs from the two means has a note', () => {
  const textOf = (now: number[]) =>
    terminalView(
      benchCompareView(
        document(
          'bench-compare',
          '1.0',
          compareSides(side('a', [10, 10.1, 9.9]), side('b', now), { gates: [], withinProcess: false }),
        ),
      ),
      { width: 120, level: 2 },
    );
  expect(textOf([12, 12.1, 11.9])).not.toContain('Both values are means');
  // Mean 14, geometric mean 11.9.
  expect(textOf([7, 8, 27])).toContain('Both values are means; the change compares typical values');
});

test('repeats of one process have a spread: only p is missing, and only an option that is not used is proposed', () => {
  const repeats = (selector: string, values: number[]) => {
    const data = side(selector, values);
    return { ...data, metrics: data.metrics.map((one) => ({ ...one, basis: 'repeats' as const })) };
  };
  const single = { ...metric([3]), id: 'output', name: 'output_tokens_per_s' };
  const textOf = (withinProcess: boolean) => {
    const [a, b] = [repeats('a', [10, 10.1, 9.9]), repeats('b', [12, 12.1, 11.9])];
    const sides = [a, b].map((one) => ({ ...one, metrics: [...one.metrics, single] }));
    const compared = compareSides(sides[0]!, sides[1]!, { gates: [], withinProcess });
    return terminalView(benchCompareView(document('bench-compare', '1.0', compared)), {
      width: 120,
      level: 2,
    });
  };
  expect(textOf(false)).toMatch(/p, because .*the values of a side are from one process/);
  expect(textOf(false)).toContain('or use --within-process');
  expect(textOf(true)).not.toContain('or use --within-process');
  expect(textOf(true)).toMatch(/Measure an engine with more\s+--launches/);
});

test('loads are drawn as a line per side over their points, one point relative to the base', () => {
  const at = (point: string | null, values: number[]): SampledMetric => ({
    ...metric(values),
    id: `${point} · tpot_ms`,
    point,
  });
  const chartsOf = (base: SampledMetric[], now: SampledMetric[]) => {
    const compared = compareSides(
      { ...side('a', []), metrics: base },
      { ...side('b', []), metrics: now },
      { gates: [], withinProcess: false },
    );
    const view = benchCompareView(document('bench-compare', '1.0', compared));
    expect(terminalView(view, { width: 80, level: 2 })).not.toContain('Metrics, base and new');
    return view.sections
      .find(({ id }) => id === 'charts')!
      .blocks.flatMap((block) => (block.type === 'chart' ? [block.chart] : []));
  };
  const [lines] = chartsOf(
    [at('4 users', [2]), at('16 users', [3])],
    [at('4 users', [1]), at('16 users', [5])],
  );
  expect(lines).toMatchObject({ form: 'lines', x: { categories: ['4 users', '16 users'] } });
  const { panels } = lines as Extract<typeof lines, { form: 'lines' }>;
  expect(panels[0]!.series.map(({ name, points }) => [name, points])).toEqual([
    [
      'base',
      [
        [0, 2],
        [1, 3],
      ],
    ],
    [
      'new',
      [
        [0, 1],
        [1, 5],
      ],
    ],
  ]);
  const [bars] = chartsOf([at(null, [2])], [at(null, [3])]);
  expect(bars).toMatchObject({ form: 'bars', kind: 'multiples', rows: ['TPOT'] });
  expect((bars as Extract<typeof bars, { form: 'bars' }>).series.map(({ values }) => values)).toEqual([
    [2],
    [3],
  ]);
});

test('metrics of one side are counted, not listed', () => {
  const only = (name: string): SampledMetric => ({ ...metric([3]), id: name, name });
  const [a, b] = [side('a', [10, 10.1, 9.9]), side('b', [12, 12.1, 11.9])];
  const more = ['t.one', 't.two', 't.three', 't.four', 't.five'].map(only);
  const compared = compareSides(
    a,
    { ...b, metrics: [...b.metrics, ...more] },
    { gates: [], withinProcess: false },
  );
  const view = benchCompareView(document('bench-compare', '1.0', compared));
  const text = terminalView(view, { width: 120 });
  expect(text).toMatch(/5 metrics only in new: .*t\.one, .*t\.four and 1\s+more\./);
  expect(text.match(/t\.one/g)).toHaveLength(1);
  // The page has every row.
  expect(pageOfView(view, { clientScript: '' })).toContain('t.five');
});
