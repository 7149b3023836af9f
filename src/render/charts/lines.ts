import type { EChartsOption, LineSeriesOption } from 'echarts';
import { cutEnd } from '../../vocabulary/cut.js';
import { formatNumber, formatQuantity, formatTimeTick } from '../../vocabulary/format.js';
import type { LinesChart, Panel, Point, Series } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { plainText } from '../value.js';
import { backgroundMarks, extentOf, intervals, largest, markRoom, pointMarks } from './marks.js';
import { axisName, axisStyle, base, grid, isNarrow, type Frame, tip, valueAxis } from './chart.js';

const panelHeight = 150;
const panelTop = 26;
const panelBottom = 28;

/** Whether the chart has panels with separate areas; a single panel without title takes the whole box. */
const isPaneled = ({ panels }: LinesChart): boolean => panels.length > 1 || panels[0]?.title !== undefined;

export function linesHeight(chart: LinesChart): number {
  const { panels, small } = chart;
  return isPaneled(chart) ? panels.length * panelHeight + 24 : small ? 220 : 300;
}

/** Lines over categories, a number or time, with intervals, limits, background areas and marks; from 0 unless a panel is scaled, so that heights can be compared. */
export function linesOption(chart: LinesChart, frame: Frame): EChartsOption {
  const { panels, x } = chart;
  const several = isPaneled(chart);
  const overTime = 'unit' in x && x.unit === 's';
  const all = panels.flatMap((panel, index) => panel.series.map((series) => ({ panel, series, index })));
  const axis = (index: number) => (several ? { gridIndex: index } : {});
  return {
    ...base(frame),
    ...(overTime && { tooltip: timeTip(all, frame) }),
    title: panels.flatMap(({ title }, index) =>
      title === undefined
        ? []
        : [
            {
              left: 0,
              top: index * panelHeight,
              ...titleOf(title, panels[index]!, frame),
            },
          ],
    ),
    grid: several
      ? panels.map((_, index) => ({
          left: 68,
          right: isNarrow(frame) ? 12 : 104,
          top: index * panelHeight + panelTop,
          height: panelHeight - panelTop - panelBottom,
        }))
      : grid({ top: 14 + markRoom(chart), right: 20, bottom: 8 }),
    xAxis: panels.map((panel, index) => ({
      ...axis(index),
      ...xAxis(chart, panel, frame, index === panels.length - 1),
    })),
    yAxis: panels.map((panel, index) => ({ ...axis(index), ...yAxis(chart, panel, frame) })),
    series: [
      ...all.map(({ panel, series, index }, nth) => ({
        ...(several ? { xAxisIndex: index, yAxisIndex: index } : {}),
        ...lineSeries(chart, panel, series, frame),
        ...(all.findIndex((drawn) => drawn.index === index) === nth && backgroundMarks(chart, panel, frame)),
      })),
      ...all.flatMap(({ series, index }) =>
        intervals(series, frame).map((interval) =>
          several ? { ...interval, xAxisIndex: index, yAxisIndex: index } : interval,
        ),
      ),
      ...pointMarks(chart, frame),
    ],
  };
}

/** The title of a panel; on a phone with the names of its lines, which have no room at their ends. */
function titleOf(title: string, { series }: Panel, frame: Frame) {
  const style = { fontSize: 12, fontWeight: 'normal' as const, color: frame.theme.muted };
  const lines = series.filter((line) => line.style !== 'pale' && line.style !== 'dots');
  if (!isNarrow(frame) || lines.length < 2) return { text: title, textStyle: style };
  const names = lines.map(({ name }, index) => `{line${index}|━} ${name.replaceAll(/[{}|]/g, ' ')}`);
  return {
    text: [title, ...names].join('  '),
    textStyle: {
      ...style,
      width: frame.width,
      overflow: 'truncate' as const,
      rich: Object.fromEntries(
        lines.map(({ color }, index) => [
          `line${index}`,
          { color: themeColor(color, frame.theme), fontWeight: 'bold' as const },
        ]),
      ),
    },
  };
}

const valuesOf = ({ series }: Panel): number[] =>
  series
    .filter(({ style }) => style !== 'guide')
    .flatMap(({ points }) => points.flatMap(([, y]) => (y === null ? [] : [y])));

/** Maximum of a panel; stacked series are summed. */
function highest(panel: Panel): number {
  const stacked = panel.series.filter(({ style }) => style === 'stack');
  const length = largest(stacked.map(({ points }) => points.length));
  const sums = Array.from({ length }, (_, index) =>
    stacked.reduce((sum, { points }) => sum + (points[index]?.[1] ?? 0), 0),
  );
  return largest([...valuesOf(panel), ...sums, ...(panel.bounds ?? []).map(({ value }) => value)]);
}

/** Maximum of an axis: includes intervals, unless they are much larger than the values and are cut. */
export function withIntervals(panel: Panel): number {
  const top = highest(panel);
  const ends = panel.series.flatMap(({ points }) => points.map(([, , more]) => more?.ci95?.[1] ?? 0));
  return Math.max(top, Math.min(2 * top, largest(ends)));
}

const labelLine = 14;

/** Labels of a few categories, each on as many lines as its room needs, so that none is left out; of many, those that have room. */
function categoryLabels(categories: readonly string[], frame: Frame) {
  const fontSize = isNarrow(frame) ? 11 : 12;
  const label = { color: frame.theme.muted, fontSize };
  if (categories.length > 8) return { label: { ...label, hideOverlap: true }, lines: 1 };
  // The values' axis and the margins take up to 100 pixels.
  const width = Math.floor((frame.width - 100) / Math.max(1, categories.length)) - 4;
  const characters = Math.max(1, Math.floor(width / (0.56 * fontSize)));
  const lines = Math.max(1, ...categories.map((text) => linesOf(text, characters)));
  return {
    label: { ...label, interval: 0, width, overflow: 'break' as const, lineHeight: labelLine },
    lines,
  };
}

/** Lines that the words of a text take. */
function linesOf(text: string, characters: number): number {
  let lines = 1;
  let used = 0;
  for (const word of text.split(' ')) {
    if (used > 0 && used + 1 + word.length > characters) [lines, used] = [lines + 1, 0];
    used += (used > 0 ? 1 : 0) + word.length;
    lines += Math.floor((used - 1) / characters);
    used = ((used - 1) % characters) + 1;
  }
  return lines;
}

/** The distance of ECharts' ticks on an axis of this length. */
function tickStep(length: number, ticks: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(length, 1e-9) / ticks));
  const digit = Math.max(length, 1e-9) / ticks / power;
  return power * (digit < 1.5 ? 1 : digit < 2.5 ? 2 : digit < 4 ? 3 : digit < 7 ? 5 : 10);
}

function xAxis(chart: LinesChart, panel: Panel, frame: Frame, isLast: boolean) {
  const { x } = chart;
  const name = isLast ? { text: x.name, gap: isPaneled(chart) ? 24 : 28 } : undefined;
  if ('categories' in x) {
    const { label, lines } = categoryLabels(x.categories, frame);
    return {
      type: 'category' as const,
      data: [...x.categories],
      ...axisStyle(frame),
      axisLabel: label,
      ...(name && axisName(name.text, name.gap + labelLine * (lines - 1))),
    };
  }
  const [from, to] = extentOf([panel]);
  const axis = valueAxis(frame, x.unit, to - from, name);
  if (x.unit !== 's') return { ...axis, min: 0, max: to };
  const [min, max] = x.range ?? extentOf(chart.panels);
  const stepNs = 1e9 * tickStep(max - min, isNarrow(frame) ? 3 : 5);
  return {
    ...axis,
    min,
    max,
    splitLine: { show: false },
    axisLabel: {
      ...axis.axisLabel,
      showMinLabel: false,
      showMaxLabel: false,
      // Below the lowest label of the values, which a long first label would reach.
      margin: isPaneled(chart) ? 8 : 12,
      formatter: (value: number) => formatTimeTick(1e9 * value, stepNs, 1e9 * max),
    },
  };
}

function yAxis(chart: LinesChart, panel: Panel, frame: Frame) {
  const { x } = chart;
  const { unit, max: panelMax, scaled } = panel;
  const top = panelMax ?? withIntervals(panel);
  const steps = isPaneled(chart) ? 2 : 4;
  const axis = { ...valueAxis(frame, unit, top), splitNumber: isPaneled(chart) ? 3 : 4 };
  if (scaled) {
    const ends = [
      ...valuesOf(panel),
      ...(panel.bounds ?? []).flatMap(({ value, ci95 }) => [value, ...(ci95 ?? [])]),
    ];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const margin = (high - low || high) / 12;
    return {
      ...axis,
      min: low - margin,
      max: high + margin,
      axisLabel: { ...axis.axisLabel, showMinLabel: false, showMaxLabel: false },
    };
  }
  const overTime = 'unit' in x && x.unit === 's';
  return {
    ...axis,
    min: 0,
    ...(panelMax !== undefined && { max: panelMax, interval: panelMax / steps }),
    ...(panelMax === undefined && !overTime && top > 0 && { max: top * 1.08 }),
    ...(unit === 'B' && top > 0 && binarySteps(top, steps)),
    ...(wholeUnits.has(unit) && valuesOf(panel).every(Number.isInteger) && { minInterval: 1 }),
    axisLabel: { ...axis.axisLabel, showMaxLabel: panelMax !== undefined || overTime || unit === 'B' },
  };
}

/** Units without fractions. */
const wholeUnits = new Set(['', 'B', 'processes']);

/** Axis steps for bytes are powers of two. */
function binarySteps(top: number, steps: number) {
  const interval = 2 ** Math.ceil(Math.log2(top / (steps + 1)));
  return { interval, max: Math.ceil(top / interval) * interval };
}

function lineSeries(chart: LinesChart, panel: Panel, series: Series, frame: Frame): LineSeriesOption {
  const { x } = chart;
  const { name, points, style, symbol, dash = 'solid' } = series;
  const color = themeColor(series.color, frame.theme);
  const overTime = 'unit' in x && x.unit === 's';
  const alone = overTime && !isPaneled(chart) && panel.series.length === 1;
  const isStack = style === 'stack';
  const isDots = style === 'dots';
  const marked = symbol !== undefined && (isDots || points.length < 64) && style !== 'guide';
  const hasEndLabels = isPaneled(chart) && overTime && style !== 'pale' && !isDots && !isNarrow(frame);
  const labelShift = hasEndLabels ? endLabelShifts(panel)[panel.series.indexOf(series)]! : null;
  return {
    type: 'line',
    name,
    symbol: symbol ?? 'circle',
    symbolSize: points.length < 64 ? 9 : 6,
    showSymbol: marked,
    ...(isDots && { showAllSymbol: true }),
    silent: style === 'guide',
    connectNulls: false,
    z: style === 'guide' || style === 'pale' || isStack ? 2 : 3,
    ...(isStack ? { stack: 'held', step: 'start' } : overTime && !isDots ? { sampling: 'lttb' } : {}),
    ...((isStack || alone) && { areaStyle: { color, opacity: isStack ? 0.75 : 0.12 } }),
    lineStyle: {
      color,
      type: dash,
      width: style === 'dots' ? 0 : style === 'guide' || style === 'pale' || isStack ? 1 : 1.75,
      ...(style === 'pale' && { opacity: 0.6 }),
    },
    itemStyle: { color },
    ...(labelShift !== null && {
      endLabel: {
        show: true,
        color: frame.theme.muted,
        offset: [0, labelShift],
        formatter: () => cutEnd(name, 15),
      },
    }),
    data: points.map(([place, y, more]) => ({
      value: [place, y ?? '-'],
      ...(more?.outlier && { symbol: 'triangle', symbolSize: 12, itemStyle: { color: frame.theme.ink } }),
    })),
    tooltip: {
      formatter: (params) => {
        const point = points[(params as { dataIndex: number }).dataIndex];
        return point ? tip(...pointTip(x, panel, name, point)) : '';
      },
    },
  };
}

function pointTip(
  x: LinesChart['x'],
  { unit, title }: Panel,
  name: string,
  [place, y, more]: Point,
): [string, ...string[]] {
  const where = 'categories' in x ? (x.categories[place] ?? '') : `${formatNumber(place)} ${x.name}`;
  return [
    [title, name, where].filter(Boolean).join(', '),
    y === null ? '' : formatQuantity(y, unit),
    ...(more?.ci95
      ? [`95 % interval ${formatQuantity(more.ci95[0], unit)} to ${formatQuantity(more.ci95[1], unit)}`]
      : []),
    ...(more?.notes ?? []).map(plainText),
    ...(more?.outlier ? ['outlier'] : []),
  ];
}

/** Tooltip with the values of every line of a panel at one time. */
function timeTip(all: readonly { panel: Panel; series: Series }[], frame: Frame) {
  return {
    ...base(frame).tooltip,
    trigger: 'axis' as const,
    formatter: (params: unknown) => {
      const shown = params as { value: [number, number]; seriesIndex: number }[];
      const [any] = shown;
      if (!any) return '';
      return tip(
        formatQuantity(any.value[0], 's'),
        ...shown.flatMap(({ value, seriesIndex }) => {
          const { panel, series } = all[seriesIndex] ?? {};
          if (!panel || !series || series.style === 'pale' || (series.style === 'stack' && !value[1]))
            return [];
          const text = formatQuantity(value[1], panel.unit);
          return [panel.series.length === 1 ? text : `${series.name}: ${text}`];
        }),
      );
    },
  };
}

/** Height of a line of text, px. */
const labelHeight = 13;

const peak = ({ points }: Series): number => largest(points.map(([, y]) => y ?? 0));

/**
 * How far each series' label at the end of its line is moved, px, so that labels of lines that end close together overlap neither each
 * other nor the axis labels below; null for the lowest lines where a panel has room for fewer labels than lines.
 */
export function endLabelShifts(panel: Panel): (number | null)[] {
  const top = panel.max ?? highest(panel);
  const room = panelHeight - panelTop - panelBottom;
  const labeled = new Set(
    panel.series.toSorted((a, b) => peak(b) - peak(a)).slice(0, Math.floor(room / labelHeight)),
  );
  const ends = panel.series.map(({ points }) => room * (1 - (points.at(-1)?.[1] ?? 0) / (top || 1)));
  const shifts: (number | null)[] = ends.map(() => null);
  let next = room - 5;
  const lowestFirst = ends
    .map((_, index) => index)
    .filter((index) => labeled.has(panel.series[index]!))
    .toSorted((a, b) => ends[b]! - ends[a]!);
  for (const index of lowestFirst) {
    const place = Math.min(ends[index]!, next);
    shifts[index] = place - ends[index]!;
    next = place - labelHeight;
  }
  return shifts;
}
