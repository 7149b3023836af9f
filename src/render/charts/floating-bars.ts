import type { EChartsOption } from 'echarts';
import { formatPercent, nbsp } from '../../vocabulary/format.js';
import { barColor, type Theme } from '../palette.js';
import { axisStyle, base, type ChartInput, grid, isNarrow, tip } from './chart.js';

/** A bar of a waterfall that begins where the one before it ended. */
export interface FloatingBar {
  id: string;
  name: string;
  meaning: string;
  ms: number;
  text: string;
  /** What the bars before it add up to. */
  from: number;
  confidence: string | null;
}

/**
 * Places bars one after the other and ends with the measured time; bars that cannot be seen have no place, the table
 * behind the chart lists them.
 * @param texts of each bar and of the measured time, without unit
 */
export function floating(
  bars: readonly Pick<FloatingBar, 'id' | 'name' | 'meaning' | 'ms' | 'confidence'>[],
  measured: { ms: number; meaning: string; name?: string },
  texts: readonly string[],
): FloatingBar[] {
  let reached = 0;
  const rows: FloatingBar[] = [];
  for (const [index, bar] of bars.entries()) {
    const from = bar.ms < 0 ? reached + bar.ms : reached;
    reached += bar.ms;
    const text = texts[index] ?? '';
    if (/[1-9]/.test(text)) rows.push({ ...bar, text, from });
  }
  const whole = { id: 'measured', name: 'measured', from: 0, confidence: null };
  rows.push({ ...whole, ...measured, text: texts.at(-1) ?? '' });
  return rows;
}

export const floatingHeight = (rows: readonly FloatingBar[]): number => 40 + 26 * rows.length;

function style(row: FloatingBar, theme: Theme, colorOf: (id: string, theme: Theme) => string) {
  const color = row.id === 'measured' ? theme.ink : colorOf(row.id, theme);
  if (!row.id.startsWith('nonessential')) return { color };
  return { color, opacity: 0.55, borderColor: color, borderWidth: 1 };
}

export function floatingBarsOption(
  input: Pick<ChartInput<unknown>, 'theme' | 'width'>,
  rows: readonly FloatingBar[],
  /** For bars of something else than time: their unit, what they add up to, and their colours. */
  {
    unit = 'ms',
    whole = 'the measured time',
    colorOf = barColor,
    longest: scale,
  }: {
    unit?: string;
    whole?: string;
    colorOf?: (id: string, theme: Theme) => string;
    /** What takes the whole width; without it the longest bar. */
    longest?: number;
  } = {},
): EChartsOption {
  const measured = rows.at(-1)?.ms ?? 0;
  const longest = scale ?? Math.max(...rows.map((row) => row.from + Math.abs(row.ms)), 0);
  return {
    ...base(input),
    grid: grid({ right: isNarrow(input.width) ? 62 : 72 }),
    // No rounded maximum: the longest bar takes the whole width, its label the margin.
    xAxis: { type: 'value', min: 0, max: longest, show: false },
    yAxis: {
      type: 'category',
      inverse: true,
      data: rows.map(({ name }) => name),
      ...axisStyle(input),
      axisTick: { show: false },
      axisLabel: {
        color: input.theme.ink,
        interval: 0,
        ...(isNarrow(input.width) ? { width: 124, overflow: 'truncate' as const, fontSize: 11 } : {}),
      },
    },
    series: [
      {
        type: 'bar',
        stack: 'ms',
        silent: true,
        itemStyle: { color: 'transparent' },
        data: rows.map(({ from }) => from),
      },
      {
        type: 'bar',
        name: 'ms',
        stack: 'ms',
        barMaxWidth: 18,
        tooltip: {
          formatter: (params) => {
            const row = rows[(params as { dataIndex: number }).dataIndex];
            if (!row) return '';
            const share = row.id === 'measured' ? [] : [`${formatPercent(row.ms / measured)} of ${whole}`];
            const trust = row.confidence === null ? [] : [`confidence: ${row.confidence}`];
            return tip(row.name, row.meaning, `${row.text}${nbsp}${unit}`, ...share, ...trust);
          },
        },
        data: rows.map((row) => ({
          value: Math.abs(row.ms),
          itemStyle: style(row, input.theme, colorOf),
          label: {
            show: true,
            position: 'right',
            // The bar's own opacity is not the text's.
            opacity: 1,
            color: input.theme.ink,
            formatter: `${row.text}${nbsp}${unit}`,
          },
        })),
      },
    ],
  };
}
