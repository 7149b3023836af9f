import type { BenchFit, BenchResult } from '../../../model/documents/bench.js';
import { fitsOf, variantNames } from '../../../views/bench-series.js';
import {
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatQuantity,
} from '../../../vocabulary/format.js';
import { axisName, axisStyle, base, grid, tip, type Chart } from '../chart.js';
import { intervalSeries, lineKey, markOf } from '../lines.js';

const samples = 60;

const fittedAt = ({ coefficients }: BenchFit, x: number): number =>
  coefficients.reduce((sum, coefficient, power) => sum + coefficient * x ** power, 0);

const fittedMetric = {
  prompt: 'ttft_ms',
  output: 'e2e_ms',
  batch_ttft: 'ttft_ms',
  batch_tpot: 'tpot_ms',
} as const;

/** 95 % intervals of the means that a fit was made from. */
function intervalsOf({ variants }: BenchResult, label: string, fit: BenchFit): [number, number, number][] {
  const spreads = (variants.find((variant) => variant.label === label)?.points ?? []).flatMap(
    ({ latency }) => {
      const spread = latency[fittedMetric[fit.id]];
      return 'value' in spread ? [] : [spread];
    },
  );
  return fit.at.flatMap(({ x, measured }): [number, number, number][] => {
    const interval = spreads.find(({ mean }) => mean === measured)?.ci95;
    return interval ? [[x, ...interval]] : [];
  });
}

/** A dependence that was fitted, part the id of the fit: means with their intervals as symbols, the fit as a line. */
export const benchFitChart: Chart<BenchResult> = {
  height: () => 300,
  key: (result) => lineKey(variantNames(result)),
  build: (input) => {
    const { theme } = input;
    const all = fitsOf(input.result, input.part);
    const first = all[0]?.fit;
    if (!first) return base(input);
    const reach = Math.max(...all.flatMap(({ fit }) => fit.at.map(({ x }) => x)));
    return {
      ...base(input),
      grid: grid({ top: 14, right: 24 }),
      xAxis: {
        type: 'value',
        min: 0,
        max: reach,
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          hideOverlap: true,
          formatter: (value: number) =>
            Number.isInteger(value) ? formatCount(value) : formatNumber(value, 2),
        },
        ...axisName(first.x, 28),
      },
      yAxis: {
        type: 'value',
        min: 0,
        splitNumber: 4,
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          formatter: (value: number) => formatQuantity(value, first.unit, 2),
        },
      },
      series: all.flatMap(({ label, fit }, index) => {
        const { color, symbol, dash } = markOf(index);
        return [
          {
            type: 'line' as const,
            name: `${label}, fitted`,
            showSymbol: false,
            silent: true,
            z: 1,
            lineStyle: { color, width: 1.5, type: dash },
            itemStyle: { color },
            data: Array.from({ length: samples + 1 }, (_, i) => {
              const x = (reach * i) / samples;
              return [x, fittedAt(fit, x)];
            }),
          },
          {
            type: 'scatter' as const,
            name: label,
            symbol,
            symbolSize: 10,
            z: 3,
            itemStyle: { color },
            data: fit.at.map(({ x, measured }) => [x, measured]),
            tooltip: {
              formatter: (params: unknown) => {
                const at = fit.at[(params as { dataIndex: number }).dataIndex];
                if (!at) return '';
                return tip(
                  `${label}, ${formatNumber(at.x)} ${fit.x}`,
                  `${formatMs(at.measured)} measured`,
                  `${formatMs(at.fitted)} fitted (${formatPercent(at.fitted / at.measured - 1)})`,
                );
              },
            },
          },
          intervalSeries(intervalsOf(input.result, label, fit), color),
        ];
      }),
    };
  },
};
