import type { ProfileResult, TelemetryResult } from '../../model/documents/profile.js';
import { formatNumber, formatQuantity, nbsp } from '../format.js';
import { metricName } from '../names.js';
import { classColors } from '../palette.js';
import { axisStyle, base, isNarrow, tip, type Chart } from './chart.js';

type Series = TelemetryResult['series'][number];

/** One panel a metric. */
function panels(result: ProfileResult): { metric: string; series: Series[] }[] {
  const metrics = new Map<string, Series[]>();
  for (const series of result.telemetry?.series ?? []) {
    metrics.set(series.metric, [...(metrics.get(series.metric) ?? []), series]);
  }
  return [...metrics].map(([metric, series]) => ({ metric, series }));
}

/** Bytes are plotted in MiB, so that the axis is divided in powers of two. */
const scaleOf = (series: Series | undefined): number => (series?.unit === 'B' ? 2 ** 20 : 1);

const panelHeight = 150;
const panelTop = 26;

/** The measured process first, then the whole host, single cores pale behind them. */
function lineStyle(scope: string, muted: string): { color: string; width: number; opacity: number } {
  if (scope === 'process') return { color: classColors.gemm, width: 1.75, opacity: 1 };
  if (/^cpu\d+$/.test(scope)) return { color: muted, width: 1, opacity: 0.6 };
  return { color: classColors.attention, width: 1.75, opacity: 1 };
}

export const telemetryChart: Chart = {
  height: (result) => panels(result).length * panelHeight + 10,
  build: (input) => {
    const { theme } = input;
    const all = panels(input.result);
    return {
      ...base(input),
      title: all.map(({ metric }, index) => ({
        text: metricName(metric),
        left: 0,
        top: index * panelHeight,
        textStyle: { fontSize: 12, fontWeight: 'normal', color: theme.muted },
      })),
      grid: all.map((_, index) => ({
        left: 68,
        right: isNarrow(input.width) ? 12 : 64,
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
          formatter: (value: number) => `${formatNumber(value, 2)}${nbsp}s`,
        },
      })),
      yAxis: all.map((panel, index) => ({
        type: 'value',
        gridIndex: index,
        splitNumber: 3,
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          formatter: (value: number) =>
            formatQuantity(value * scaleOf(panel.series[0]), panel.series[0]?.unit ?? ''),
        },
      })),
      series: all.flatMap((panel, index) =>
        panel.series.map((series) => {
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
              formatter: () => series.scope.slice(0, 9),
            },
            tooltip: {
              formatter: () => tip(series.scope, metricName(series.metric)),
            },
            data: series.points.map(([ms, value]) => [ms / 1e3, value / scaleOf(series)]),
          };
        }),
      ),
    };
  },
};
