import { beforeAll, expect, test } from 'vitest';
import { compareSessions } from '../compare/sessions/compare.js';
import { fixture, imported } from '../facts/trace/test-import.js';
import type { Document } from '../model/document.js';
import type { CompareResult } from '../model/documents/compare.js';
import { missing } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { testHome } from '../session/test-folder.js';
import type { Bars, Block, Table } from './block.js';
import { compareView } from './compare.js';

const hostile = '</script><img src=x onerror="globalThis.pwned=1">\u001b[2J';
let comparison: Document<CompareResult>;

beforeAll(async () => {
  const home = testHome();
  const nsys = (name: string) =>
    imported(home, 'nsys-sqlite', fixture(`nsys-2025.3.1-h200/${name}.sqlite`), { name });
  comparison = await compareSessions([await nsys('tiny-whole'), await nsys('tiny-nsys')]);
}, 60_000);

const sectionOf = (document: Document<CompareResult>, id: string): readonly Block[] =>
  compareView(document).sections.find((section) => section.id === id)!.blocks;
const tables = (blocks: readonly Block[]) =>
  blocks.filter((block): block is Block & Table => block.type === 'table');

test('the table of bars starts with the label of a bar and ends with its id', () => {
  const [first] = sectionOf(comparison, 'waterfalls') as [Block & Bars];
  const { columns, rows } = first.behind as Table;
  expect([columns[0]!.id, columns.at(-1)!.id]).toEqual(['bar', 'id']);
  expect(rows.map(({ cells }) => [cells[0], cells.at(-1)])).toContainEqual([
    'launch call',
    { code: 'launch_overhead' },
  ]);
});

test('both waterfalls and their difference show bars that add up to the totals', () => {
  const [first] = sectionOf(comparison, 'waterfalls') as [Block & Bars];
  const [a, b] = first.sides;
  expect([a!.label, b!.label]).toEqual(['A', 'B']);
  expect(b!.bars.map(({ name }) => name)).toEqual(a!.bars.map(({ name }) => name));
  for (const side of first.sides)
    expect(side.bars.reduce((sum, { ms }) => sum + ms!, 0)).toBeCloseTo(side.totals[0]!.ms, 6);
  // From A's time over every change to B's.
  const { chart } = first.difference!;
  const changes = chart.form === 'waterfall' ? chart.bars : [];
  expect(changes.reduce((sum, { value }) => sum + value, 0)).toBeCloseTo(b!.totals[0]!.ms, 6);
});

test('stages show times, the work of one instance, and whether the change is significant', () => {
  const [stages] = tables(sectionOf(comparison, 'stages'));
  const decode = stages!.rows.findIndex(({ cells }) => plainText(cells[0]!) === 'decode step');
  const data = comparison.data.stages.find(({ phase }) => phase === 'decode')!;
  const cells = stages!.rows[decode]!.cells;
  expect(cells.slice(1, 3).map(rawValue)).toEqual(data.values.map((value) => value!.duration_ms.value));
  expect(rawValue(cells[3]!)).toBeCloseTo(data.changes[1]!.delta_ms, 9);
  expect(rawValue(cells[5]!)).toBe('no');
  const kernels = stages!.rows
    .slice(decode)
    .find(({ cells: [name] }) => plainText(name!).trim() === 'kernels');
  expect(kernels!.cells.slice(1, 3).map(rawValue)).toEqual([219, 182]);
});

test('a removed kernel has no figure on the second side, a new one none on the first', () => {
  const rows = tables(sectionOf(comparison, 'kernels')).flatMap((table) => table.rows);
  const cellsOf = (status: string) => rows.find(({ cells }) => cells[4] === status)!.cells;
  expect(rawValue(cellsOf('gone')[2]!)).toBeNull();
  expect(rawValue(cellsOf('new')[1]!)).toBeNull();
});

test('lines fit 80 and 120 columns; three sessions are shown as a matrix of bars', () => {
  const { data } = comparison;
  const three: Document<CompareResult> = {
    ...comparison,
    data: {
      ...data,
      sessions: [...data.sessions, data.sessions[1]!],
      stages: data.stages.map((row) => matrix(row)),
      classes: data.classes.map((row) => matrix(row)),
      kernels: data.kernels.map((row) => matrix(row)),
      waterfalls: data.waterfalls.map((waterfall) => ({
        ...waterfall,
        times_ms: [...waterfall.times_ms, null],
        roofline_ms: [...waterfall.roofline_ms, null],
        bars: waterfall.bars.map(({ values, changes, ...bar }) => ({
          ...bar,
          values: [...values, null],
          changes: [...changes, null],
        })),
      })),
      gemm_tiles: [],
      environment: [],
    },
  };
  for (const document of [comparison, three])
    for (const width of [80, 120]) {
      const lines = terminalView(compareView(document), { width, level: 2 }).split('\n');
      expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(width);
    }
  expect(() => pageOfView(compareView(three), { clientScript: '' })).not.toThrow();
  // Key sentences compare the last session with the first.
  expect(terminalView(compareView(three), { width: 100, level: 2 })).toContain('C − A  % C − A');
});

test('one cause and one missing value are each explained once', () => {
  const because = 'a GPU at its limit lowers its clocks';
  const difference = (label: string, values: string[], could_explain: string | null) => ({
    label,
    part: 'hardware' as const,
    values,
    could_explain,
  });
  const data = structuredClone(comparison.data);
  data.environment = [
    difference('GPU 0 power', ['1 W', '2 W'], because),
    difference('driver', ['1', '2'], null),
    difference('GPU 1 power', ['1 W', '3 W'], because),
  ];
  const decode = data.stages.find(({ phase }) => phase === 'decode')!;
  const [from, to] = decode.values;
  data.stages = [decode];
  decode.values = [
    { ...from!, tokens: null, tokens_per_s: missing('no_tokens', 'tokens are not known') },
    { ...to!, tokens: 4 },
  ];
  data.kernels = [
    { ...data.kernels[0]!, status: 'between', values: [null, data.kernels[0]!.values.find(Boolean)!] },
  ];
  const text = markdownView(compareView({ ...comparison, data }));
  expect(text.split(because)).toHaveLength(2);
  expect(text).toContain('only in B');
  const [stages] = tables(
    compareView({ ...comparison, data }).sections.find(({ id }) => id === 'stages')!.blocks,
  );
  const tokens = stages!.rows.find(({ cells }) => plainText(cells[0]!).trim() === 'tokens')!;
  expect(tokens.cells[1]).toEqual({ missing: 'tokens are not known' });
});

const matrix = <R extends { values: unknown[]; changes: unknown[] }>(row: R): R => ({
  ...row,
  values: [...row.values, row.values[1]],
  changes: [...row.changes, row.changes[1]],
});

test('the page draws each side and the difference, loads nothing, and names from files stay text', () => {
  const data = structuredClone(comparison.data);
  data.sessions[0]!.name = hostile;
  data.kernels[0]!.name = hostile;
  data.environment = [{ label: hostile, part: 'engine', values: [hostile, null], could_explain: null }];
  const view = compareView({ ...comparison, data });
  const page = pageOfView(view, { clientScript: '' });
  expect(page.match(/data-chart="waterfall"/g)!.length % 3).toBe(0);
  expect(page).not.toMatch(/(?:src|href)="(?!#|data:)/);
  expect(page).not.toContain('<img');
  const text = terminalView(view, { width: 80, level: 2 });
  // oxlint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
  expect(markdownView(view)).not.toContain('<img');
});
