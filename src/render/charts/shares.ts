import type { EChartsOption } from 'echarts';
import { formatMs, formatPercent } from '../../vocabulary/format.js';
import type { Theme } from '../palette.js';
import { axisStyle, base, grid, textOn, tip } from './chart.js';

export interface Segment {
  name: string;
  ms: number;
  color: string;
}

export interface ShareBar {
  name: string;
  /** 100 % of the bar, ms. */
  whole: number;
  /** The same names in the same order in every bar. */
  parts: Segment[];
}

export const sharesHeight = (bars: number): number => 44 + 44 * bars;

/** Stacked horizontal bars, each 100 % of its own whole. */
export function sharesOption(input: { theme: Theme; width: number }, bars: ShareBar[]): EChartsOption {
  const names = bars[0]?.parts.map(({ name }) => name) ?? [];
  return {
    ...base(input),
    grid: grid(),
    xAxis: {
      type: 'value',
      min: 0,
      max: 1,
      ...axisStyle(input),
      axisLabel: { color: input.theme.muted, formatter: (value: number) => formatPercent(value) },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: bars.map(({ name }) => name),
      ...axisStyle(input),
      axisTick: { show: false },
      axisLabel: { color: input.theme.ink },
    },
    series: names.map((name, index) => ({
      type: 'bar',
      name,
      stack: 'share',
      barWidth: 26,
      data: bars.map(({ parts, whole }) => {
        const part = parts[index];
        const share = part && whole > 0 ? part.ms / whole : 0;
        const color = part?.color ?? input.theme.line;
        return {
          value: share,
          itemStyle: { color, borderColor: input.theme.surface, borderWidth: share > 0.002 ? 1 : 0 },
          label: {
            show: share > (input.width < 500 ? 0.14 : 0.06),
            color: textOn(color),
            formatter: formatPercent(share),
          },
        };
      }),
      tooltip: {
        formatter: (params) => {
          const bar = bars[(params as { dataIndex: number }).dataIndex];
          const part = bar?.parts[index];
          if (!bar || !part) return '';
          return tip(part.name, `${formatMs(part.ms)}, ${formatPercent(part.ms / bar.whole)} of ${bar.name}`);
        },
      },
    })),
  };
}
