import type { CustomSeriesOption, EChartsOption } from 'echarts';
import { cutEnd } from '../../vocabulary/cut.js';
import { formatQuantity, formatTick } from '../../vocabulary/format.js';
import type { TimelineChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { axisStyle, base, isNarrow, type Frame, rowAxis, textOn, tipOf } from './chart.js';

/** Up to so many lanes have the full height; more share it, with at least 4 px each: a load test has a lane per request in flight. */
const fullLanes = 24;
const laneHeight = (lanes: number): number => Math.max(4, Math.floor(26 * Math.min(1, fullLanes / lanes)));
/** Line height of a label on a phone. */
const phoneLine = 11;
/** Minimum lane height for a name. */
const namedHeight = 14;
/** Maximum spans for SVG; with more a canvas is used, since a page with so many shapes is slow. */
export const maxSvgSpans = 1000;

export const timelineHeight = ({ lanes }: TimelineChart): number =>
  lanes.length * laneHeight(lanes.length) + 84;

/** Approximate width of a character at 11 px; a label that does not fit is cut, and left out below four characters. */
const characterWidth = 6.2;

function fitLabel(label: string, width: number): string {
  const room = Math.floor((width - 6) / characterWidth);
  if (room < 4) return '';
  return cutEnd(label, room);
}

function series({ spans, kinds, lanes }: TimelineChart, { theme }: Frame): CustomSeriesOption {
  const rowHeight = laneHeight(lanes.length);
  return {
    type: 'custom',
    name: 'timeline',
    clip: true,
    encode: { x: [1, 2], y: 0 },
    data: spans.map(([lane, start, dur]) => [lane, start / 1e6, (start + dur) / 1e6]),
    tooltip: tipOf(spans, ([, start, dur, kindIndex]) => [
      kinds[kindIndex]?.title ?? '',
      ...(kinds[kindIndex]?.notes ?? []),
      formatQuantity(dur, 'ns'),
      `from ${formatQuantity(start, 'ns')}`,
    ]),
    renderItem: (params, api) => {
      const [lane, start, dur, kindIndex] = spans[params.dataIndex] ?? [0, 0, 0, -1];
      const kind = kinds[kindIndex];
      if (!kind) return null;
      const color = themeColor(kind.color, theme);
      const [left = 0, middle = 0] = api.coord([start / 1e6, lane]);
      const [right = 0] = api.coord([(start + dur) / 1e6, lane]);
      const box = params.coordSys as unknown as { x: number; width: number };
      const from = Math.max(left, box.x);
      const to = Math.min(right, box.x + box.width);
      if (to < from) return null;
      // A span thinner than a pixel is still drawn, since a busy range would otherwise look idle.
      const width = Math.max(to - from, 0.7);
      const height = rowHeight * 0.76;
      return {
        type: 'rect' as const,
        shape: { x: from, y: middle - height / 2, width, height },
        style: { fill: color },
        // An empty text instead of none: a redrawn shape would otherwise keep its old label.
        textContent: {
          type: 'text' as const,
          style: {
            text: rowHeight < namedHeight ? '' : fitLabel(kind.label, width),
            fill: textOn(color),
            fontSize: 11,
          },
        },
        textConfig: { position: 'inside' as const },
      };
    },
  };
}

/** Spans on lanes over time, with zoom. */
export function timelineOption(chart: TimelineChart, frame: Frame): EChartsOption {
  const narrow = isNarrow(frame);
  const zoom = { filterMode: 'weakFilter' as const, minSpan: 0.01 };
  const longest = chart.lanes.reduce((most, { length }) => Math.max(most, length), 0);
  const left = Math.min(narrow ? 84 : 156, 24 + 8 * longest);
  const rowHeight = laneHeight(chart.lanes.length);
  // Several lanes may have the same name.
  const rows = rowAxis(
    frame,
    chart.lanes.map((label, index) => `${index}\u0000${label}`),
  );
  return {
    ...base(frame),
    grid: { left, right: 20, top: 8, bottom: 72 },
    xAxis: {
      type: 'value',
      min: 0,
      max: chart.dur_ns / 1e6,
      ...axisStyle(frame),
      axisLabel: {
        color: frame.theme.muted,
        hideOverlap: true,
        formatter: (value: number) => formatTick(value, 'ms', chart.dur_ns / 1e6),
        showMaxLabel: false,
      },
    },
    yAxis: {
      ...rows,
      axisLabel: {
        ...rows.axisLabel,
        width: left - 8,
        interval: Math.ceil(namedHeight / rowHeight) - 1,
        // On a phone a label has two lines: "API calls," and "thread 2950".
        overflow: narrow && rowHeight >= 2 * phoneLine ? 'break' : 'truncate',
        lineHeight: narrow ? phoneLine : 14,
        fontSize: narrow ? 10 : 12,
        formatter: (value: string) => value.slice(value.indexOf('\u0000') + 1),
      },
    },
    dataZoom: [
      // Without Ctrl the wheel scrolls the page.
      { type: 'inside', ...zoom, zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false },
      {
        type: 'slider',
        ...zoom,
        height: 24,
        bottom: 10,
        showDetail: false,
        brushSelect: false,
        borderColor: frame.theme.line,
        textStyle: { color: frame.theme.muted },
      },
    ],
    series: [series(chart, frame)],
  };
}
