import type { ProfileResult, StageResult } from '../../model/documents/profile.js';
import { formatMsColumn, formatPercent, nbsp } from '../format.js';
import { shownBars } from '../bars.js';
import { barColor, type Theme } from '../palette.js';
import { axisStyle, base, grid, isNarrow, tip, type Chart } from './chart.js';

interface Row {
  id: string;
  name: string;
  meaning: string;
  ms: number;
  text: string;
  /** Where the floating bar begins: what the bars before it add up to. */
  from: number;
  confidence: string | null;
}

function rowsOf(stage: StageResult | undefined): Row[] {
  const measured = stage?.duration_ms.value;
  if (!stage || measured === null || measured === undefined) return [];
  const bars = shownBars(stage);
  const texts = formatMsColumn([...bars.map(({ ms }) => ms), measured], 3);
  let reached = 0;
  const rows: Row[] = [];
  for (const [index, { id, label, meaning, ms, confidence }] of bars.entries()) {
    const from = ms < 0 ? reached + ms : reached;
    reached += ms;
    // A bar that cannot be seen has no place here; the table lists it.
    if (!/[1-9]/.test(texts[index] ?? '')) continue;
    rows.push({ id, name: label, meaning, ms, text: texts[index] ?? '', from, confidence });
  }
  rows.push({
    id: 'measured',
    name: 'measured',
    meaning: 'without a profiler',
    ms: measured,
    text: texts.at(-1) ?? '',
    from: 0,
    confidence: null,
  });
  return rows;
}

const find = (result: ProfileResult, part: string): StageResult | undefined =>
  result.stages.find((stage) => stage.kind === part);

function style(row: Row, theme: Theme) {
  const color = row.id === 'measured' ? theme.ink : barColor(row.id, theme);
  if (!row.id.startsWith('nonessential')) return { color };
  return { color, opacity: 0.55, borderColor: color, borderWidth: 1 };
}

/** From the roofline to the measured time: each bar starts where the one before ended. `part`: stage kind. */
export const barsChart: Chart = {
  height: (result, part) => 40 + 26 * rowsOf(find(result, part)).length,
  build: (input) => {
    const rows = rowsOf(find(input.result, input.part));
    const measured = rows.at(-1)?.ms ?? 0;
    const longest = Math.max(...rows.map((row) => row.from + Math.abs(row.ms)), 0);
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
              const share =
                row.id === 'measured' ? [] : [`${formatPercent(row.ms / measured)} of the measured time`];
              const trust = row.confidence === null ? [] : [`confidence: ${row.confidence}`];
              return tip(row.name, row.meaning, `${row.text}${nbsp}ms`, ...share, ...trust);
            },
          },
          data: rows.map((row) => ({
            value: Math.abs(row.ms),
            itemStyle: style(row, input.theme),
            label: {
              show: true,
              position: 'right',
              color: input.theme.ink,
              formatter: `${row.text}${nbsp}ms`,
            },
          })),
        },
      ],
    };
  },
};
