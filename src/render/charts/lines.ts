import type { EChartsOption, SeriesOption } from 'echarts';
import { formatQuantity, nbsp } from '../../vocabulary/format.js';
import { classColors, type Theme } from '../palette.js';
import { axisName, axisStyle, base, grid, isNarrow, type KeyEntry, tip } from './chart.js';

export interface LineValue {
  value: number;
  /** 95 % interval of it. */
  ci95?: [number, number] | null;
  /** Further lines of the tooltip. */
  notes?: string[];
}

export interface LineMark {
  color: string;
  symbol: string;
  dash: 'solid' | 'dashed' | 'dotted';
}

export interface Line extends LineMark {
  name: string;
  /** One a category; null where nothing was measured. */
  values: (LineValue | null)[];
  /** Says what no interval or symbol says: drawn thin, without symbols. */
  quiet?: boolean;
}

export interface LinesInput {
  theme: Theme;
  width: number;
}

export interface LinesFacts {
  categories: string[];
  xName: string;
  unit: string;
  lines: Line[];
  /** Vertical marks at a category, named. */
  marks?: { at: number; name: string; color: string }[];
  /** Horizontal marks, named. */
  bounds?: { value: number; name: string }[];
  /** Largest value to show; what lies above leaves the chart. */
  most?: number;
}

const colors = [
  classColors.gemm,
  classColors.attention,
  classColors.norm,
  classColors.elementwise,
  classColors.copy,
  classColors.sampling,
  classColors.communication,
  classColors.quantization,
];
const symbols = ['circle', 'rect', 'triangle', 'diamond'];
const dashes = ['solid', 'dashed', 'dotted'] as const;

/** Colour, symbol and dash of the nth of several things that are compared: no two of twelve look the same in grey. */
export function markOf(index: number): LineMark {
  return {
    color: colors[index % colors.length] ?? colors[0]!,
    symbol: symbols[index % symbols.length] ?? 'circle',
    dash: dashes[Math.floor(index / symbols.length) % dashes.length] ?? 'solid',
  };
}

/** The key of lines that are told apart by their place in a list. */
export const lineKey = (names: readonly string[]): KeyEntry[] =>
  names.map((name, index) => {
    const { color, ...line } = markOf(index);
    return { name, color, line };
  });

type IntervalAt = [category: number, low: number, high: number];

/** Bars of 95 % intervals, from low to high. */
export function intervalSeries(intervals: IntervalAt[], color: string): SeriesOption {
  return {
    type: 'custom',
    silent: true,
    clip: true,
    z: 4,
    encode: { x: 0, y: [1, 2] },
    data: intervals,
    renderItem: (params, api) => {
      const one = intervals[params.dataIndex];
      if (!one) return null;
      const [x = 0, low = 0] = api.coord([one[0], one[1]]);
      const [, high = 0] = api.coord([one[0], one[2]]);
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: 'line' as const,
        shape: { x1, y1, x2, y2 },
        style: { stroke: color, lineWidth: 1.5 },
      });
      return {
        type: 'group',
        children: [line(x, low, x, high), line(x - 5, low, x + 5, low), line(x - 5, high, x + 5, high)],
      };
    },
  };
}

const intervalWords = ([low, high]: [number, number], unit: string): string =>
  `95${nbsp}% interval ${formatQuantity(low, unit)} to ${formatQuantity(high, unit)}`;

function lineSeries(line: Line, { categories, unit }: LinesFacts): SeriesOption[] {
  const intervals = line.values.flatMap((one, index): IntervalAt[] =>
    one?.ci95 ? [[index, one.ci95[0], one.ci95[1]]] : [],
  );
  const series: SeriesOption = {
    type: 'line',
    name: line.name,
    symbol: line.symbol,
    symbolSize: 9,
    showSymbol: line.quiet !== true,
    silent: line.quiet === true,
    connectNulls: false,
    z: line.quiet ? 1 : 3,
    lineStyle: { color: line.color, width: line.quiet ? 1 : 2, type: line.quiet ? 'dashed' : line.dash },
    itemStyle: { color: line.color },
    data: line.values.map((one) => one?.value ?? null),
    tooltip: {
      formatter: (params) => {
        const { dataIndex } = params as { dataIndex: number };
        const one = line.values[dataIndex];
        if (!one) return '';
        return tip(
          `${line.name}, ${categories[dataIndex] ?? ''}`,
          formatQuantity(one.value, unit),
          ...(one.ci95 ? [intervalWords(one.ci95, unit)] : []),
          ...(one.notes ?? []),
        );
      },
    },
  };
  return [series, ...(intervals.length > 0 ? [intervalSeries(intervals, line.color)] : [])];
}

/** Room above the lines for what the marks are called. */
function markRoom({ marks = [] }: LinesFacts): number {
  return 14 * marks.reduce((rows, { name }) => rows + name.split('\n').length, 0);
}

function markSeries({ marks = [], bounds = [], categories }: LinesFacts, theme: Theme): SeriesOption[] {
  if (marks.length === 0 && bounds.length === 0) return [];
  const label = { color: theme.ink, fontSize: 11 };
  const last = categories.length - 1;
  // Each name has rows of its own, so that none hides another.
  let rows = 0;
  const lifted = marks.map((mark) => {
    const own = mark.name.split('\n').length;
    rows += own;
    return { ...mark, distance: 14 * (rows - own) + 4 };
  });
  const vertical = lifted.map(({ at, name, distance, color }) => ({
    xAxis: at,
    name,
    lineStyle: { color, type: 'dotted' as const, width: 1.5 },
    // A name at an edge of the chart keeps inside of it.
    label: {
      ...label,
      position: 'end' as const,
      distance,
      align: at === 0 ? ('left' as const) : at === last ? ('right' as const) : ('center' as const),
      formatter: name,
    },
  }));
  const horizontal = bounds.map(({ value, name }) => ({
    yAxis: value,
    name,
    lineStyle: { color: theme.ink, type: 'dashed' as const, width: 1.5 },
    label: { ...label, position: 'insideStartTop' as const, formatter: name },
  }));
  return [
    {
      type: 'line',
      name: 'marks',
      data: [],
      silent: true,
      markLine: { silent: true, symbol: 'none', data: [...vertical, ...horizontal] },
    },
  ];
}

/** Top of the axis: intervals belong to it unless they dwarf the values, and are cut there. */
export function withIntervals(highest: number, lines: readonly Line[]): number {
  const ends = lines.flatMap(({ values }) => values.map((one) => one?.ci95?.[1] ?? 0));
  return Math.max(highest, Math.min(2 * highest, Math.max(...ends, 0)));
}

/** Lines over categories that have an order (batch sizes, loads), with 95 % intervals; from 0, so that heights compare. */
export function linesOption(input: LinesInput, facts: LinesFacts): EChartsOption {
  const { theme, width } = input;
  const tops = facts.lines
    .filter(({ quiet }) => !quiet)
    .flatMap(({ values }) => values.map((one) => one?.value ?? 0));
  const highest = Math.max(...tops, ...(facts.bounds ?? []).map(({ value }) => value), 0);
  const top = facts.most ?? withIntervals(highest, facts.lines) * 1.08;
  return {
    ...base(input),
    grid: grid({ top: 14 + markRoom(facts), right: 16 }),
    xAxis: {
      type: 'category',
      data: facts.categories,
      ...axisStyle(input),
      axisLabel: { color: theme.muted, hideOverlap: true, ...(isNarrow(width) ? { fontSize: 11 } : {}) },
      ...axisName(facts.xName, 28),
    },
    yAxis: {
      type: 'value',
      min: 0,
      ...(top > 0 ? { max: top } : {}),
      splitNumber: 4,
      // Bytes are divided in powers of two.
      ...(facts.unit === 'B' && top > 0 ? { interval: 2 ** Math.ceil(Math.log2(top / 5)) } : {}),
      ...axisStyle(input),
      axisLabel: {
        color: theme.muted,
        showMaxLabel: false,
        formatter: (value: number) => formatQuantity(value, facts.unit, 2),
      },
    },
    series: [...facts.lines.flatMap((line) => lineSeries(line, facts)), ...markSeries(facts, theme)],
  };
}
