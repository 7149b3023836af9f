import type { CustomSeriesOption } from 'echarts';
import type { Timeline } from '../../model/documents/profile.js';
import { formatMs, formatNumber, nbsp } from '../format.js';
import { classLabels, layerText } from '../../vocabulary/op-classes.js';
import { barColors, classColors, type Theme } from '../palette.js';
import { axisStyle, base, isNarrow, textOn, tip, type Chart } from './chart.js';
import { classKey } from './classes.js';

const lanes = ['stages', 'operators'];

interface Span {
  lane: number;
  start_ms: number;
  end_ms: number;
  color: string;
  /** Drawn in the span when it fits. */
  label: string;
  tip: () => string;
}

function stageColor(kind: string, theme: Theme): string {
  const tone = theme.dark ? 'dark' : 'light';
  if (kind === 'sampling') return classColors.sampling;
  return kind === 'prefill' ? barColors.roofline[tone] : barColors.serial[tone];
}

function spans({ stages, operators }: Timeline, theme: Theme): Span[] {
  return [
    ...stages.map((stage) => ({
      lane: 0,
      start_ms: stage.start_ms,
      end_ms: stage.start_ms + stage.dur_ms,
      color: stageColor(stage.kind, theme),
      label: stage.label,
      tip: () => tip(stage.label, formatMs(stage.dur_ms), `from ${formatMs(stage.start_ms)}`),
    })),
    ...operators.map((operator) => ({
      lane: 1,
      start_ms: operator.start_ms,
      end_ms: operator.start_ms + operator.dur_ms,
      color: classColors[operator.class],
      label: operator.op_type,
      tip: () =>
        tip(
          operator.name,
          `${operator.op_type}, ${classLabels[operator.class]}, ${layerText(operator.layer)}`,
          `${formatMs(operator.dur_ms)}, from ${formatMs(operator.start_ms)}`,
        ),
    })),
  ];
}

/** Approximate width of a character at 11 px; a label that does not fit is left out rather than cut. */
const characterWidth = 6.4;

function series(all: Span[]): CustomSeriesOption {
  return {
    type: 'custom',
    name: 'timeline',
    clip: true,
    encode: { x: [1, 2], y: 0 },
    data: all.map((span) => [span.lane, span.start_ms, span.end_ms]),
    tooltip: { formatter: (params) => all[(params as { dataIndex: number }).dataIndex]?.tip() ?? '' },
    renderItem: (params, api) => {
      const span = all[params.dataIndex];
      if (!span) return null;
      const [left = 0, middle = 0] = api.coord([span.start_ms, span.lane]);
      const [right = 0] = api.coord([span.end_ms, span.lane]);
      const lane = api.size?.([0, 1]);
      const height = (Array.isArray(lane) ? (lane[1] ?? 40) : 40) * 0.72;
      const box = params.coordSys as unknown as { x: number; width: number };
      const from = Math.max(left, box.x);
      const to = Math.min(right, box.x + box.width);
      if (to < from) return null;
      // A span thinner than a pixel is still drawn, or a busy stretch would look idle.
      const width = Math.max(to - from, 0.6);
      const fits = span.label.length * characterWidth + 6 < width;
      return {
        type: 'rect',
        shape: { x: from, y: middle - height / 2, width, height },
        style: { fill: span.color },
        // An empty text, not none: a shape that is drawn again keeps the label it had otherwise.
        textContent: {
          type: 'text',
          style: { text: fits ? span.label : '', fill: textOn(span.color), fontSize: 11 },
        },
        textConfig: { position: 'inside' },
      };
    },
  };
}

/** One prefill and the first decode steps: stages above, operators in their class's colour below. */
export const timelineChart: Chart = {
  height: () => 230,
  key: ({ timeline }) =>
    classKey((name) => timeline?.operators.some((operator) => operator.class === name) ?? false),
  zooms: true,
  build: (input) => {
    const { timeline } = input.result;
    if (!timeline) return base(input);
    const end = Math.max(...timeline.stages.map((stage) => stage.start_ms + stage.dur_ms));
    const narrow = isNarrow(input.width);
    return {
      ...base(input),
      grid: { left: narrow ? 62 : 72, right: 28, top: 8, bottom: 76 },
      xAxis: {
        type: 'value',
        min: 0,
        max: end,
        ...axisStyle(input),
        axisLabel: {
          color: input.theme.muted,
          hideOverlap: true,
          formatter: (value: number) => `${formatNumber(value)}${nbsp}ms`,
          showMaxLabel: false,
        },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: lanes,
        ...axisStyle(input),
        axisTick: { show: false },
        axisLabel: { color: input.theme.ink },
      },
      dataZoom: [
        // Without Ctrl the wheel scrolls the page.
        { type: 'inside', filterMode: 'weakFilter', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false },
        {
          type: 'slider',
          filterMode: 'weakFilter',
          height: 24,
          bottom: 10,
          showDetail: false,
          brushSelect: false,
          borderColor: input.theme.line,
          textStyle: { color: input.theme.muted },
        },
      ],
      series: [series(spans(timeline, input.theme))],
    };
  },
};
