import type { EChartsOption } from 'echarts';
import { formatFactor, formatPercent, formatQuantity } from '../../vocabulary/format.js';
import type { BarsChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import {
  axisName,
  axisStyle,
  base,
  grid,
  isNarrow,
  type Frame,
  rowAxis,
  textOn,
  tip,
  valueAxis,
} from './chart.js';

export function barsHeight({ kind, rows, series }: BarsChart): number {
  if (kind === 'stacked') return 240;
  return kind === 'shares' ? 44 + 44 * rows.length : 60 + (14 * series.length + 10) * rows.length;
}

/** The sum of each row or column. */
const rowTotals = ({ rows, series }: BarsChart): number[] =>
  rows.map((_, row) => series.reduce((sum, { values }) => sum + (values[row] ?? 0), 0));

export function barsOption(chart: BarsChart, frame: Frame): EChartsOption {
  const { kind, unit, axis, rows, series } = chart;
  const totals = rowTotals(chart);
  const top = Math.max(0, ...totals);
  const shownValue = (value: number | null | undefined, row: number): number | null => {
    if (kind === 'stacked') return value ?? 0;
    const total = kind === 'shares' ? totals[row] : series[0]?.values[row];
    return typeof value === 'number' && total ? value / total : kind === 'shares' ? 0 : null;
  };
  const text = (value: number | null) =>
    value === null ? '' : kind === 'multiples' ? formatFactor(value) : formatPercent(value);
  const values = {
    shares: { ...valueAxis(frame, 'ratio', 1), min: 0, max: 1, ...(isNarrow(frame) && { interval: 0.5 }) },
    stacked: valueAxis(frame, unit, top),
    multiples: {
      ...valueAxis(frame, '×', 1, {
        text: isNarrow(frame) ? 'times the first' : `times ${series[0]?.name ?? ''}`,
        gap: 28,
      }),
      min: 0,
    },
  }[kind];
  const names =
    kind === 'stacked'
      ? { type: 'category' as const, data: [...rows], ...axisStyle(frame), ...axisName(axis ?? '', 24) }
      : rowAxis(frame, rows);
  return {
    ...base(frame),
    grid: grid(kind === 'multiples' ? { right: 52 } : {}),
    ...(kind === 'stacked' ? { xAxis: names, yAxis: values } : { xAxis: values, yAxis: names }),
    series: series.map(({ name, color: hue, values: numbers }) => {
      const color = themeColor(hue, frame.theme);
      return {
        type: 'bar' as const,
        name,
        ...(kind === 'multiples' ? { barMaxWidth: 14 } : { stack: 'whole' }),
        ...(kind === 'shares' ? { barWidth: 26 } : { barCategoryGap: '25%' }),
        data: rows.map((_, row) => {
          const value = shownValue(numbers[row], row);
          const room = isNarrow(frame) ? 0.14 : 0.06;
          return {
            value,
            itemStyle: {
              color,
              borderColor: frame.theme.surface,
              borderWidth: kind === 'shares' && (value ?? 0) > 0.002 ? 1 : 0,
            },
            label: {
              show: kind === 'multiples' || (kind === 'shares' && (value ?? 0) > room),
              ...(kind === 'multiples'
                ? { position: 'right' as const, color: frame.theme.ink, fontSize: 11 }
                : { color: textOn(color) }),
              formatter: text(value),
            },
          };
        }),
        tooltip: {
          formatter: (params: unknown) => {
            const { dataIndex: row } = params as { dataIndex: number };
            const value = numbers[row];
            if (value === undefined || value === null) return '';
            return tip(
              `${rows[row] ?? ''}, ${name}`,
              formatQuantity(value, unit),
              kind === 'multiples'
                ? text(shownValue(value, row))
                : `${formatPercent(value / totals[row]!)} of ${formatQuantity(totals[row]!, unit)}`,
            );
          },
        },
      };
    }),
  };
}
