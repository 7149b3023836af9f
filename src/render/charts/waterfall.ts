import type { EChartsOption } from 'echarts';
import { formatColumn, formatPercent } from '../../vocabulary/format.js';
import type { WaterfallBar, WaterfallChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { base, grid, isNarrow, type Frame, rowAxis, tipOf } from './chart.js';

type Placed = WaterfallBar & {
  text: string;
  /** The sum of the bars before it. */
  from: number;
  isTotal: boolean;
};

/** Share of the total from which on a bar is visible: a few pixels. */
const visibleShare = 0.01;

/**
 * Bars in sequence, with their total last; bars too small to see are left out, since the table behind the chart lists them.
 */
export function placedBars({
  bars,
  total,
  halfInterval: half,
  unit,
  longest,
  signed = false,
}: WaterfallChart): Placed[] {
  const largest = Math.max(...bars.map(({ value }) => Math.abs(value)), 0);
  const values = [...bars.map(({ value }) => value), ...(total ? [total.value] : [])];
  const { texts, unit: shownUnit } = formatColumn(
    values,
    unit,
    signed ? Math.max(largest, total?.value ?? 0) : (total?.value ?? largest),
    half,
  );
  const sign = (index: number) => (signed && index > 0 && (bars[index]?.value ?? 0) > 0 ? '+' : '');
  const text = (index: number): string => `${sign(index)}${texts[index]!} ${shownUnit}`;
  const isVisible = (value: number): boolean => Math.abs(value) >= visibleShare * (total?.value ?? largest);
  let reached = 0;
  // Charts next to each other have aligned rows.
  const aligned = longest !== undefined;
  const rows = bars.flatMap((bar, index): Placed[] => {
    const from = total ? reached + Math.min(0, bar.value) : 0;
    reached += bar.value;
    const isShown = aligned || /^[^<]*[1-9]/.test(texts[index]!) || isVisible(bar.value);
    return isShown ? [{ ...bar, text: text(index), from, isTotal: false }] : [];
  });
  if (!total) return rows;
  const last = { name: 'measured', ...total, color: 'ink' as const, from: 0, isTotal: true };
  return [...rows, { ...last, text: text(bars.length) }];
}

/** The link of a drawn bar. */
export const waterfallLink = (chart: WaterfallChart, index: number): string | undefined =>
  placedBars(chart)[index]?.link;

/** Row height for two lines of a label, so that two sides of twelve bars and the difference fit on the first screen of a comparison. */
export const waterfallHeight = (chart: WaterfallChart): number => 16 + 26 * placedBars(chart).length;

export function waterfallOption(chart: WaterfallChart, frame: Frame): EChartsOption {
  const rows = placedBars(chart);
  const { total } = chart;
  const longest = chart.longest ?? Math.max(...rows.map(({ from, value }) => from + Math.abs(value)), 0);
  return {
    ...base(frame),
    grid: grid({ right: isNarrow(frame) && !chart.signed ? 62 : 72 }),
    // No rounded maximum: the longest bar takes the whole width, and its label the margin.
    xAxis: { type: 'value', min: 0, max: longest, show: false },
    yAxis: rowAxis(
      frame,
      rows.map(({ name }) => name),
      { words: true },
    ),
    series: [
      {
        type: 'bar',
        stack: 'bars',
        silent: true,
        itemStyle: { color: 'transparent' },
        data: rows.map(({ from }) => from),
      },
      {
        type: 'bar',
        stack: 'bars',
        barMaxWidth: 18,
        tooltip: tipOf(rows, ({ name, meaning, value, text, confidence, isTotal, link }) => [
          name,
          ...[
            meaning,
            text,
            isTotal || !total ? '' : `${formatPercent(value / total.value)} of ${total.shareOf}`,
            confidence ? `confidence: ${confidence}` : '',
            link === undefined ? '' : 'a click shows it in the timeline',
          ].filter(Boolean),
        ]),
        data: rows.map(({ value, text, color: hue, light, link }) => {
          const color = themeColor(hue, frame.theme);
          return {
            value: Math.abs(value),
            cursor: link === undefined ? 'default' : 'pointer',
            itemStyle: light ? { color, opacity: 0.55, borderColor: color, borderWidth: 1 } : { color },
            // The text does not inherit the bar's opacity.
            label: { show: true, position: 'right', opacity: 1, color: frame.theme.ink, formatter: text },
          };
        }),
      },
    ],
  };
}
