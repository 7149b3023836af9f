import type { LatencyResult } from '../../model/documents/profile.js';
import type { Figure } from '../../model/figure.js';
import { repeatLabels } from '../../views/profile-series.js';
import { formatMs, formatNumber, nbsp } from '../../vocabulary/format.js';
import { classColors } from '../palette.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart } from './chart.js';

interface Panel {
  name: string;
  figure: Figure;
  points: { label: string; ms: number; outlier: boolean }[];
}

function panels(latency: LatencyResult): Panel[] {
  const labels = repeatLabels(latency.per_repeat);
  const panel = (
    name: string,
    figure: Figure,
    of: (repeat: LatencyResult['per_repeat'][number]) => number | null,
  ) => ({
    name,
    figure,
    points: latency.per_repeat.flatMap((repeat, index) => {
      const ms = of(repeat);
      return ms === null ? [] : [{ label: labels[index] ?? '', ms, outlier: repeat.outlier }];
    }),
  });
  return [
    panel('TTFT', latency.ttft_ms, (repeat) => repeat.ttft_ms),
    panel('TPOT', latency.tpot_ms, (repeat) => repeat.tpot_ms),
    panel('end to end', latency.e2e_ms, (repeat) => repeat.e2e_ms),
  ].filter(({ points }) => points.length > 0);
}

const panelHeight = 132;
const panelTop = 24;

/** Every timed repeat in the order it ran, one panel a metric, the mean with its 95 % interval behind. */
export const repeatsChart: Chart = {
  height: (result) => panels(result.latency).length * panelHeight + 24,
  build: (input) => {
    const { theme } = input;
    const all = panels(input.result.latency);
    return {
      ...base(input),
      title: all.map(({ name }, index) => ({
        text: `${name}, ms`,
        left: 0,
        top: index * panelHeight,
        textStyle: { fontSize: 12, fontWeight: 'normal', color: theme.muted },
      })),
      grid: all.map((_, index) => ({
        left: 56,
        right: 12,
        top: index * panelHeight + panelTop,
        height: panelHeight - panelTop - 22,
      })),
      xAxis: all.map((panel, index) => ({
        type: 'category',
        gridIndex: index,
        data: panel.points.map(({ label }) => label),
        ...axisStyle(input),
        ...(index === all.length - 1 ? axisName('process launch.repeat', 24) : {}),
      })),
      yAxis: all.map((_, index) => ({
        type: 'value',
        gridIndex: index,
        scale: true,
        splitNumber: 3,
        ...axisStyle(input),
        axisLabel: { color: theme.muted, formatter: (value: number) => formatNumber(value) },
      })),
      series: all.map((panel, index) => ({
        type: 'scatter',
        name: panel.name,
        xAxisIndex: index,
        yAxisIndex: index,
        data: panel.points.map(({ ms, outlier }) => ({
          value: ms,
          symbol: outlier ? 'triangle' : 'circle',
          symbolSize: outlier ? 12 : 8,
          itemStyle: { color: outlier ? classColors.sampling : classColors.gemm },
        })),
        tooltip: {
          formatter: (params) => {
            const point = panel.points[(params as { dataIndex: number }).dataIndex];
            if (!point) return '';
            return tip(
              `${panel.name}, launch.repeat ${point.label}`,
              formatMs(point.ms),
              ...(point.outlier ? ['outlier'] : []),
            );
          },
        },
        ...(panel.figure.value === null
          ? {}
          : {
              markLine: {
                silent: true,
                symbol: 'none',
                label: { show: false },
                lineStyle: { color: theme.muted, type: 'solid', width: 1 },
                data: [{ yAxis: panel.figure.value }],
              },
            }),
        ...(panel.figure.value === null || !panel.figure.ci95
          ? {}
          : {
              markArea: {
                silent: true,
                itemStyle: { color: theme.muted, opacity: 0.16 },
                data: [[{ yAxis: panel.figure.ci95[0] }, { yAxis: panel.figure.ci95[1] }]],
              },
            }),
      })),
    };
  },
};

/** Mean step period by step index: how decode slows as the context grows; p50 and p95 over all steps. */
export const stepsChart: Chart = {
  height: () => 240,
  build: (input) => {
    const { theme } = input;
    const { decode_step_by_index_ms: steps, decode_step_percentiles_ms: percentiles } = input.result.latency;
    const lines = percentiles
      ? [
          { name: 'p50', yAxis: percentiles.p50 },
          { name: 'p95', yAxis: percentiles.p95 },
        ]
      : [];
    return {
      ...base(input),
      grid: grid({ top: 12, right: 44 }),
      xAxis: {
        type: 'category',
        data: steps.map((_, index) => String(index + 1)),
        boundaryGap: false,
        ...axisStyle(input),
        ...axisName('decode step', 26),
      },
      yAxis: {
        type: 'value',
        scale: true,
        // The percentile lines lie outside what the means alone would span.
        ...(percentiles
          ? {
              min: ({ min }: { min: number }) => Math.min(min, percentiles.p50) * 0.99,
              max: ({ max }: { max: number }) => Math.max(max, percentiles.p95) * 1.01,
            }
          : {}),
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          showMinLabel: false,
          showMaxLabel: false,
          formatter: (value: number) => `${formatNumber(value)}${isNarrow(input.width) ? '' : `${nbsp}ms`}`,
        },
      },
      series: [
        {
          type: 'line',
          name: 'mean over repeats',
          showSymbol: steps.length < 64,
          symbolSize: 5,
          lineStyle: { color: classColors.gemm, width: 1.75 },
          itemStyle: { color: classColors.gemm },
          data: steps,
          tooltip: {
            formatter: (params) => {
              const { dataIndex, value } = params as { dataIndex: number; value: number };
              return tip(`decode step ${dataIndex + 1}`, `${formatMs(value)}, mean over repeats`);
            },
          },
          markLine: {
            silent: true,
            symbol: 'none',
            lineStyle: { color: theme.muted, type: 'dashed' },
            label: { position: 'end', color: theme.muted, formatter: ({ name }: { name: string }) => name },
            data: lines,
          },
        },
      ],
    };
  },
};
