import type { SampledSeries } from '../../views/samples.js';
import type { EChartsOption } from 'echarts';
import { formatQuantity } from '../../vocabulary/format.js';
import { metricLabel, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import { classColors, type Theme } from '../palette.js';
import { axisName, axisStyle, base, byteAxis, isNarrow, secondsLabel, tip, type Chart } from './chart.js';

export type Series = SampledSeries;

/** A stretch of time behind the lines. */
export interface Shade {
  name: string;
  from_ms: number;
  to_ms: number;
  color: string;
}

/** What tells most about a doubtful run first; what these do not name follows. */
const readingOrder = [
  'cores_busy',
  'utilization_percent',
  'power_w',
  'steal_percent',
  'rss_bytes',
  'clock_mhz',
];

/** One panel a metric. */
function panels(all: Series[]): { metric: string; series: Series[] }[] {
  const metrics = new Map<string, Series[]>();
  for (const series of all) {
    metrics.set(series.metric, [...(metrics.get(series.metric) ?? []), series]);
  }
  const rank = (metric: string): number => {
    const place = readingOrder.indexOf(metric);
    return place === -1 ? readingOrder.length : place;
  };
  return [...metrics]
    .map(([metric, series]) => ({ metric, series }))
    .toSorted((a, b) => rank(a.metric) - rank(b.metric));
}

/** Percent of one thing, which cannot pass 100; a process of many threads can. */
const isShare = ({ series }: { series: Series[] }): boolean =>
  series.every(
    ({ unit, scope, points }) => unit === '%' && scope !== 'process' && points.every(([, v]) => v <= 100),
  );

const mostOf = (all: readonly Series[]): number =>
  all.reduce((most, { points }) => points.reduce((high, [, value]) => Math.max(high, value), most), 0);

/** Bytes are plotted in one binary unit, so that the axis is divided in whole ones of it. */
const scaleOf = ({ series }: { series: Series[] }): number =>
  series[0]?.unit === 'B' ? byteAxis(mostOf(series)).bytes : 1;

/** Numbers of things: no half of one on the axis. */
const isCount = ({ series }: { series: Series[] }): boolean =>
  series.every(({ unit, points }) => unit === '' && points.every(([, value]) => Number.isInteger(value)));

/** Seconds from the first to the last sample. */
function spanOf(series: Series[]): number {
  const ends = series.flatMap(({ points }) => [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0]);
  return (Math.max(...ends) - Math.min(...ends)) / 1e3;
}

/** Counted things have their name above the panel; the axis needs the number only. */
function axisLabel(panel: { series: Series[] }): (value: number) => string {
  const unit = panel.series[0]?.unit ?? '';
  if (unit === 'cores' || isCount(panel)) return String;
  if (unit !== 'B') return (value) => formatQuantity(value, unit);
  const { bytes, label } = byteAxis(mostOf(panel.series));
  return (value) => label(value * bytes);
}

const panelHeight = 150;
const panelTop = 26;

const gpuColors = [
  classColors.norm,
  classColors.elementwise,
  classColors.copy,
  classColors.sampling,
  classColors.communication,
  classColors.quantization,
];

/** The measured process first, then the whole host, single cores pale behind them. */
function lineStyle(scope: string, muted: string): { color: string; width: number; opacity: number } {
  if (scope === 'process') return { color: classColors.gemm, width: 1.75, opacity: 1 };
  if (/^cpu\d+$/.test(scope)) return { color: muted, width: 1, opacity: 0.6 };
  const gpu = /^gpu(\d+)/.exec(scope)?.[1];
  const color =
    gpu === undefined ? classColors.attention : (gpuColors[Number(gpu) % gpuColors.length] ?? muted);
  return { color, width: 1.75, opacity: 1 };
}

/** Height of a line of text, px. */
const labelHeight = 13;

/**
 * How far each series' label at the end of its line moves, px, so that those of lines that end close together do not lie on
 * each other, nor on the labels of the axis below.
 */
export function endLabelShifts(panel: { series: Series[] }): number[] {
  const top = isShare(panel) ? 100 : mostOf(panel.series);
  const room = panelHeight - panelTop - 28;
  const own = panel.series.map(({ points }) => room * (1 - (points.at(-1)?.[1] ?? 0) / (top || 1)));
  const shifts = own.map(() => 0);
  let next = room - 5;
  const lowestFirst = own.map((_, index) => index).toSorted((a, b) => own[b]! - own[a]!);
  for (const index of lowestFirst) {
    const place = Math.min(own[index]!, next);
    shifts[index] = place - own[index]!;
    next = place - labelHeight;
  }
  return shifts;
}

function shadeAreas(shades: Shade[]) {
  return {
    silent: true,
    label: { show: false },
    data: shades.map((shade): [object, object] => [
      { xAxis: shade.from_ms / 1e3, itemStyle: { color: shade.color, opacity: 0.3 } },
      { xAxis: shade.to_ms / 1e3 },
    ]),
  };
}

export const telemetryHeight = (series: Series[]): number => panels(series).length * panelHeight + 24;

/** One panel a metric, over one time axis each; `shades` lie behind the lines of every panel. */
export function telemetryOption(
  input: { theme: Theme; width: number },
  shown: Series[],
  shades: Shade[] = [],
): EChartsOption {
  const { theme } = input;
  const all = panels(shown);
  return {
    ...base(input),
    title: all.map(({ metric }, index) => ({
      text: metricLabel(metric),
      left: 0,
      top: index * panelHeight,
      textStyle: { fontSize: 12, fontWeight: 'normal', color: theme.muted },
    })),
    grid: all.map((_, index) => ({
      left: 68,
      right: isNarrow(input.width) ? 12 : 88,
      top: index * panelHeight + panelTop,
      height: panelHeight - panelTop - 28,
    })),
    xAxis: all.map((_, index) => ({
      type: 'value',
      gridIndex: index,
      min: 'dataMin',
      max: 'dataMax',
      ...axisStyle(input),
      splitLine: { show: false },
      axisLabel: {
        color: theme.muted,
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: secondsLabel(spanOf(all[index]?.series ?? [])),
      },
      ...(index === all.length - 1 ? axisName('since the session began', 24) : {}),
    })),
    yAxis: all.map((panel, index) => ({
      type: 'value',
      gridIndex: index,
      splitNumber: 3,
      ...(isShare(panel) ? { min: 0, max: 100, interval: 50 } : {}),
      ...(isCount(panel) ? { minInterval: 1 } : {}),
      ...axisStyle(input),
      axisLabel: {
        color: theme.muted,
        formatter: axisLabel(panel),
      },
    })),
    series: all.flatMap((panel, index) => {
      const scale = scaleOf(panel);
      const labelShifts = endLabelShifts(panel);
      return panel.series.map((series, nth) => {
        const style = lineStyle(series.scope, theme.muted);
        return {
          type: 'line' as const,
          name: series.scope,
          xAxisIndex: index,
          yAxisIndex: index,
          showSymbol: false,
          sampling: 'lttb' as const,
          lineStyle: style,
          itemStyle: { color: style.color },
          z: style.opacity < 1 ? 2 : 3,
          triggerLineEvent: true,
          endLabel: {
            show: style.opacity === 1 && !isNarrow(input.width),
            color: theme.muted,
            offset: [0, labelShifts[nth] ?? 0],
            formatter: () => scopeLabel(series.scope).slice(0, 12),
          },
          tooltip: {
            formatter: () => tip(scopeLabel(series.scope), metricLabel(series.metric)),
          },
          ...(nth === 0 && shades.length > 0 ? { markArea: shadeAreas(shades) } : {}),
          data: series.points.map(([ms, value]) => [ms / 1e3, value / scale]),
        };
      });
    }),
  };
}

export const telemetryChart: Chart = {
  height: (result) => telemetryHeight(result.telemetry?.series ?? []),
  build: (input) => telemetryOption(input, input.result.telemetry?.series ?? []),
};
