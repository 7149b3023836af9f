import type { CustomSeriesOption } from 'echarts';
import type { TraceResult, TraceTimeline } from '../../../model/documents/trace.js';
import { formatQuantity, nbsp } from '../../../vocabulary/format.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import { barColors, classColors, type Theme } from '../../palette.js';
import { axisStyle, base, isNarrow, textOn, tip, type Chart, type KeyEntry } from '../chart.js';
import { idleCauseLabel, idleCauses } from '../../../vocabulary/idle-causes.js';
import { phaseLabel } from '../../../vocabulary/stages.js';
import { opClasses } from '../../../model/classes.js';
import { phaseColor } from './colours.js';

const laneHeight = 26;
/** More than these are drawn as pixels: a page with so many shapes is slow. */
const mostShapes = 1000;

interface Span {
  lane: number;
  start_ns: number;
  dur_ns: number;
  color: string;
  label: string;
  tip: () => string;
}

const depths = ({ stages }: TraceTimeline): number => 1 + Math.max(0, ...stages.map(({ depth }) => depth));

/** Ranges of the program above, one line a depth of nesting; then the lanes of the document. */
export const laneLabels = (timeline: TraceTimeline): string[] => [
  ...Array.from({ length: depths(timeline) }, (_, depth) => (depth === 0 ? 'stages' : '')),
  ...timeline.lanes.map(({ label }) => label),
];

export function timelineSpans(timeline: TraceTimeline, theme: Theme): Span[] {
  const above = depths(timeline);
  const from = (ns: number): string => `from ${formatQuantity(ns, 'ns')}`;
  return [
    ...timeline.stages.map(({ depth, kind, label, start_ns, dur_ns }) => ({
      lane: depth,
      start_ns,
      dur_ns,
      color: phaseColor(kind, theme),
      label,
      tip: () => tip(label, formatQuantity(dur_ns, 'ns'), from(start_ns)),
    })),
    ...timeline.events.map((event) => {
      const { start_ns, dur_ns } = event;
      const lane = timeline.lanes[event.lane];
      const name = timeline.names[event.name] ?? '';
      const idle = lane?.what === 'idle';
      return {
        lane: above + event.lane,
        start_ns,
        dur_ns,
        color: colorOf(lane?.what, name, event.class, theme),
        label: idle ? idleCauseLabel(name) : name,
        tip: () =>
          tip(
            idle ? `idle: ${idleCauseLabel(name)}` : name,
            ...(event.class === null ? [] : [classLabels[event.class]]),
            ...(idle && idleCauses[name] ? [idleCauses[name].meaning] : []),
            formatQuantity(dur_ns, 'ns'),
            from(start_ns),
          ),
      };
    }),
  ];
}

type What = TraceTimeline['lanes'][number]['what'];

function colorOf(
  what: What | undefined,
  name: string,
  opClass: keyof typeof classColors | null,
  theme: Theme,
): string {
  const tone = theme.dark ? 'dark' : 'light';
  if (opClass !== null) return classColors[opClass];
  if (what === 'copies') return classColors.copy;
  if (what === 'idle') return idleCauses[name.split('.')[0] ?? '']?.colour ?? barColors.idle[tone];
  return barColors.serial[tone];
}

/** Approximate width of a character at 11 px; a label that does not fit is cut, below four characters left out. */
const characterWidth = 6.2;

function fitted(label: string, width: number): string {
  const room = Math.floor((width - 6) / characterWidth);
  if (room < 4) return '';
  return label.length <= room ? label : `${label.slice(0, room - 1)}…`;
}

function series(all: Span[]): CustomSeriesOption {
  return {
    type: 'custom',
    name: 'timeline',
    clip: true,
    encode: { x: [1, 2], y: 0 },
    data: all.map(({ lane, start_ns, dur_ns }) => [lane, start_ns / 1e6, (start_ns + dur_ns) / 1e6]),
    tooltip: { formatter: (params) => all[(params as { dataIndex: number }).dataIndex]?.tip() ?? '' },
    renderItem: (params, api) => {
      const span = all[params.dataIndex];
      if (!span) return null;
      const [left = 0, middle = 0] = api.coord([span.start_ns / 1e6, span.lane]);
      const [right = 0] = api.coord([(span.start_ns + span.dur_ns) / 1e6, span.lane]);
      const box = params.coordSys as unknown as { x: number; width: number };
      const from = Math.max(left, box.x);
      const to = Math.min(right, box.x + box.width);
      if (to < from) return null;
      // A span thinner than a pixel is still drawn, or a busy stretch would look idle.
      const width = Math.max(to - from, 0.7);
      const height = laneHeight * 0.76;
      const shape = { x: from, y: middle - height / 2, width, height };
      const label = fitted(span.label, width);
      const rect = { type: 'rect' as const, shape, style: { fill: span.color } };
      return {
        ...rect,
        // An empty text, not none: a shape that is drawn again keeps the label it had otherwise.
        textContent: {
          type: 'text' as const,
          style: { text: label, fill: textOn(span.color), fontSize: 11 },
        },
        textConfig: { position: 'inside' as const },
      };
    },
  };
}

/** Classes of kernels, then stages and causes of idle time. */
function keyOf(timeline: TraceTimeline, theme: Theme): KeyEntry[] {
  const { events, lanes, names, stages } = timeline;
  const idle = new Set(
    events
      .filter(({ lane }) => lanes[lane]?.what === 'idle')
      .map(({ name }) => (names[name] ?? '').split('.')[0] ?? ''),
  );
  return [
    ...opClasses
      .filter((name) => events.some((event) => event.class === name))
      .map((name) => ({ name: classLabels[name], color: classColors[name] })),
    ...[...new Set(stages.map(({ kind }) => kind))].map((kind) => ({
      name: phaseLabel(kind),
      color: phaseColor(kind, theme),
    })),
    ...Object.entries(idleCauses)
      .filter(([id]) => idle.has(id))
      .map(([, { label, colour }]) => ({ name: `idle: ${label}`, color: colour })),
  ];
}

/** Ranges, API calls, streams and idle time, or operators, of one prefill and a few steps. */
export const timelineChart: Chart<Pick<TraceResult, 'timeline'>> = {
  height: ({ timeline }) => (timeline ? laneLabels(timeline).length * laneHeight + 84 : 0),
  key: ({ timeline }, _, theme) => (timeline ? keyOf(timeline, theme) : []),
  zooms: true,
  renderer: ({ timeline }) => ((timeline?.events.length ?? 0) > mostShapes ? 'canvas' : 'svg'),
  build: (input) => {
    const { timeline } = input.result;
    if (!timeline) return base(input);
    const narrow = isNarrow(input.width);
    const zoom = { filterMode: 'weakFilter' as const, minSpan: 0.01 };
    return {
      ...base(input),
      grid: { left: narrow ? 76 : 132, right: 20, top: 8, bottom: 72 },
      xAxis: {
        type: 'value',
        min: 0,
        max: timeline.dur_ns / 1e6,
        ...axisStyle(input),
        axisLabel: {
          color: input.theme.muted,
          hideOverlap: true,
          formatter: (value: number) => `${Number(value.toPrecision(6))}${nbsp}ms`,
          showMaxLabel: false,
        },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: laneLabels(timeline).map((label, index) => ({ value: `${index}\u0000${label}` })),
        ...axisStyle(input),
        axisTick: { show: false },
        axisLabel: {
          color: input.theme.ink,
          interval: 0,
          width: narrow ? 70 : 124,
          overflow: 'truncate',
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
          borderColor: input.theme.line,
          textStyle: { color: input.theme.muted },
        },
      ],
      series: [series(timelineSpans(timeline, input.theme))],
    };
  },
};
