import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import { missing } from '../model/figure.js';
import type { Chart } from '../views/chart.js';
import type { Block, Row, Table, View } from '../views/block.js';
import { pageOfView } from './html/view.js';
import { markdownView } from './markdown.js';
import { terminalView } from './terminal/view.js';

const view = (blocks: Block[], data: unknown = {}): View => ({
  command: 'test',
  title: 'blocks',
  document: document('serving', '1.0', data),
  session: { id: null, started_at: '2026-11-23T14:00:00.000Z' },
  lead: blocks,
  sections: [],
});

const table: Table = {
  type: 'table',
  title: 'stages',
  reasons: true,
  columns: [
    { id: 'stage', head: 'stage' },
    { id: 'mfu', head: 'MFU', numeric: true },
    { id: 'mbu', head: 'MBU', numeric: true },
    { id: 'ms', head: 'time', numeric: true },
  ],
  rows: [
    { cells: ['prefill', { missing: 'no roofline' }, { missing: 'no roofline' }, { n: 0.25, unit: 's' }] },
    {
      cells: [
        'decode',
        { figure: missing('no_values', 'no roofline') },
        { n: 0.5, unit: 'ratio' },
        { missing: '<b>' },
      ],
    },
  ],
};

test.each([
  ['terminal', () => terminalView(view([table]), { width: 80 })],
  ['Markdown', () => markdownView(view([table]))],
  ['page', () => pageOfView(view([table]), { clientScript: '' }).replaceAll(/<[^>]+>/g, ' ')],
])('%s: a column without any value is left out, every reason is stated once', (_, text) => {
  const shown = text().replaceAll('\u00a0', ' ');
  expect(shown).toContain('– MBU: no roofline');
  expect(shown).toContain('not shown: MFU, because no roofline');
  expect(shown.match(/MFU/g)).toHaveLength(1);
  expect(shown).toContain('250 ms');
  expect(shown).toMatch(/– time: (&lt;|<|\\<)b/);
});

test('a table names the columns that do not fit', () => {
  const wide = { ...table, columns: table.columns.map((column, drop) => ({ ...column, drop })) };
  expect(terminalView(view([wide]), { width: 20 })).toContain('(no room at 20');
  expect(terminalView(view([wide]), { width: 80 })).not.toContain('no room');
});

test('a page hides only as many columns of a wide table as necessary, the least important first', () => {
  const columns = Array.from({ length: 9 }, (_, index) => ({
    id: `c${index}`,
    head: `head${index}`,
    ...(index > 4 && { drop: 9 - index }),
  }));
  const wide: Table = {
    type: 'table',
    title: 'wide',
    columns,
    rows: [{ cells: columns.map(({ id }) => id) }],
  };
  const html = pageOfView(view([wide]), { clientScript: '' });
  const hidden = [...html.matchAll(/<th[^>]*class="detail"[^>]*>(\w+)/g)].map(([, head]) => head);
  expect(hidden).toEqual(['head7', 'head8']);
  const seven = { ...wide, columns: columns.slice(0, 7) };
  expect(pageOfView(view([seven]), { clientScript: '' })).not.toContain('class="detail"');
});

test('Markdown: a name from a file cannot start a line, end an HTML block or end code', () => {
  const name = 'k_0<img>\n\n# heading\n```\n\u202e\u2066\u001b`';
  const blocks: Block[] = [
    {
      type: 'findings',
      brief: 1,
      items: [
        {
          id: 'x',
          title: name,
          severity: 'high',
          gain: name,
          change: '',

          expected: '',
          example: null,
          minor: false,
          facts: [],
          blocks: [],
        },
      ],
    },
    { type: 'fold', title: name, blocks: [{ type: 'text', text: [name, { code: name }] }] },
    { type: 'commands', items: [{ command: name, why: name }] },
  ];
  const text = markdownView(view(blocks));
  expect(text).not.toMatch(/^(# heading|```)/m);
  expect(text).not.toMatch(/<img|[\p{Cf}]|(?!\n)\p{Cc}/u);
  // Markdown has no meaning there, so its signs are not escaped.
  expect(text.match(/<summary>.*k_0&lt;img&gt; # heading ``` `.*<\/summary>/g)).toHaveLength(2);
});

test('each command of a next step can be copied by itself', () => {
  const items = [{ command: 'inferscope run, then inferscope explain', why: 'shows it' }];
  expect(markdownView(view([{ type: 'commands', items }]))).toContain(
    '- `inferscope run`, then `inferscope explain`: shows it',
  );
});

const chart: Chart = { form: 'bars', kind: 'shares', unit: 'ms', rows: [], series: [] };

test('only pages with charts contain the script that draws', () => {
  const scripts = { clientScript: 'draws()', readingScript: 'reads()' };
  const block: Block = { type: 'chart', chart, label: 'rate', behind: table };
  const drawn = pageOfView(view([block]), scripts);
  expect([drawn.includes('draws()'), drawn.includes('reads()')]).toEqual([true, false]);
  const read = pageOfView(view([table, { type: 'text', text: ' data-chart="x"' }]), scripts);
  expect([read.includes('draws()'), read.includes('reads()')]).toEqual([false, true]);
});

test('a table without any known value shows only its reasons', () => {
  const empty = {
    ...table,
    rows: [{ cells: ['a', { missing: 'x' }, { missing: 'x' }, { missing: 'y' }] }] as Row[],
  };
  expect(
    terminalView(view([empty]), { width: 80 })
      .split('\n')
      .slice(-2),
  ).toEqual(['  not shown: MFU, MBU, because x', '  not shown: time, because y']);
  expect(markdownView(view([empty]))).not.toContain('|');
  expect(pageOfView(view([empty]), { clientScript: '' })).not.toContain('<table');
});

test('notes of a table concern only columns that are shown', () => {
  const values = (mean: Row['cells'][number], deviation: Row['cells'][number]): Row => ({
    cells: ['ttft', mean, deviation],
  });
  const marked = {
    ...table,
    columns: [
      { id: 'metric', head: 'metric' },
      { id: 'mean', head: 'mean', numeric: true },
      { id: 'sd', head: 'standard deviation', numeric: true, drop: 0 },
    ],
    rows: [
      values({ n: 1, unit: 'ms' }, [{ n: 2, unit: 'ms' }, ' ‡']),
      values({ missing: 'x' }, { missing: 'y' }),
    ],
    marks: [
      { mark: '‡', meaning: 'divided by n' },
      { mark: '†', meaning: 'nearest rank' },
    ],
  } satisfies Block;
  const below = (width: number) =>
    terminalView(view([marked]), { width })
      .split('\n')
      .filter((line) => /^ {2}[–‡†]/.test(line));
  expect(below(80)).toEqual(['  – mean: x', '  – standard deviation: y', '  ‡ divided by n']);
  expect(below(30)).toEqual(['  – mean: x']);
  expect(markdownView(view([marked]))).toContain('- ‡ divided by n');
});

test('names a column without values once, with every reason', () => {
  const cells = (why: string): Row['cells'] => ['a', { missing: why }];
  const table: Block = {
    type: 'table',
    title: '',
    columns: [
      { id: 'metric', head: 'metric' },
      { id: 'p', head: 'p' },
    ],
    reasons: true,
    rows: [{ cells: cells('missing on one side') }, { cells: cells('no spread') }],
  };
  expect(terminalView(view([table]), { width: 80, level: 2 })).toContain(
    'not shown: p, because missing on one side, or no spread',
  );
});

test('introduces issues in Markdown as in the terminal', () => {
  const issues = [{ code: 'orphans' as const, severity: 'info' as const, text: 'Some kernels.' }];
  const shown = view([{ type: 'issues', issues }]);
  expect(markdownView(shown)).toContain('- **note**: Some kernels.');
  expect(terminalView(shown, { width: 80, level: 2 })).toContain('note: Some kernels.');
});

test('the meaning of a column without values is not shown', () => {
  const columns = [
    { id: 'metric', head: 'metric' },
    { id: 'mean', head: 'mean', numeric: true, meaning: 'over steps' },
    { id: 'sd', head: 'sd', numeric: true, meaning: 'of a sample' },
  ];
  const rows = [{ cells: ['TPOT', { n: 1, unit: 'ms' }, { missing: 'one step' }] }];
  const text = terminalView(view([{ ...table, reasons: true, columns, rows }]), { width: 80 });
  expect(text).toContain('mean: over steps');
  expect(text).not.toContain('of a sample');
  const both = [{ cells: ['TTFT', { missing: 'one step' }, { missing: 'one step' }] }, ...rows];
  const notes = terminalView(view([{ ...table, reasons: true, columns, rows: both }]), { width: 80 });
  expect(notes).toContain('mean: one step');
  expect(notes).toContain('not shown: sd, because one step');
});

test('a summary counts the notes that it leaves out', () => {
  const notes: Block = { type: 'notes', items: ['one', 'two', 'three'], brief: 2 };
  expect(terminalView(view([notes]), { width: 80 })).toMatch(/two\n {2}… and 1 more line$/);
  expect(terminalView(view([notes]), { width: 80, level: 2 })).toContain('three');
});

test('charts of half the width are laid out in pairs', () => {
  const half: Block = {
    type: 'chart',
    chart,
    label: 'rate',
    half: true,
    behind: table,
  };
  const html = pageOfView(view([half, half, { type: 'text', text: 'between' }, half]), {
    clientScript: '',
  });
  expect(html.match(/<div class="two">/g)).toHaveLength(1);
  expect(html.match(/<figure>/g)).toHaveLength(3);
});

test('bars of a waterfall fit 40 columns: gaps, bars and notes are dropped before names and numbers', () => {
  const bars: Block = {
    type: 'bars',
    title: 'Decode step',
    sides: [
      {
        label: '',
        bars: [
          { name: 'inefficiency.elementwise', ms: 1.5, notes: [[{ count: 80, unit: 'kernels' }]] },
          { name: 'launch_overhead', ms: 0.25, notes: [[{ count: 462, unit: 'calls' }]] },
        ],
        totals: [{ name: 'under the profiler', ms: 934.5 }],
        pageChart: { label: '', chart: { form: 'waterfall', unit: 'ms', bars: [] } },
      },
    ],
    behind: table,
  };
  const linesAt = (width: number) =>
    terminalView(view([bars]), { width })
      .split('\n')
      .filter((line) => line.includes('ms'));
  expect(linesAt(80)[0]).toContain('80 kernels');
  for (const width of [40, 50, 60, 80]) {
    const lines = linesAt(width);
    expect(lines).toHaveLength(3);
    expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(Math.max(width, 41));
  }
});
