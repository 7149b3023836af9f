import type { EChartsOption } from 'echarts';
import { cutEnd } from '../../vocabulary/cut.js';
import { formatTick } from '../../vocabulary/format.js';
import type { Theme } from '../palette.js';

/** Theme and size of a drawing. */
export interface Frame {
  theme: Theme;
  /** Width of the box, CSS pixels; below 500 some labels are left out. */
  width: number;
}

export const fontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/** Whether there is no room for labels next to the marks. */
export const isNarrow = ({ width }: Frame): boolean => width < 500;

export function base({ theme }: Frame): EChartsOption {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily, fontSize: 12, color: theme.ink },
    tooltip: {
      trigger: 'item',
      confine: true,
      transitionDuration: 0,
      backgroundColor: theme.surface,
      borderColor: theme.line,
      textStyle: { color: theme.ink, fontSize: 12, fontFamily },
    },
  };
}

/** A grid that includes axis labels and names in its margins. */
export function grid(margins: { left?: number; right?: number; top?: number; bottom?: number } = {}) {
  return {
    left: 4,
    right: 12,
    top: 8,
    bottom: 4,
    ...margins,
    outerBoundsMode: 'same' as const,
    outerBoundsContain: 'all' as const,
  };
}

export function axisStyle({ theme }: Frame) {
  return {
    axisLine: { lineStyle: { color: theme.line } },
    axisTick: { lineStyle: { color: theme.line } },
    axisLabel: { color: theme.muted, fontSize: 12 },
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } },
  };
}

/** A value axis in `unit` up to `max` with its name in the middle; all ticks are in one unit. */
export function valueAxis(frame: Frame, unit: string, max: number, name?: { text: string; gap: number }) {
  return {
    type: 'value' as const,
    ...axisStyle(frame),
    // Without room, overlapping labels would be hidden at uneven distances.
    ...(isNarrow(frame) ? { splitNumber: 3 } : {}),
    axisLabel: {
      color: frame.theme.muted,
      hideOverlap: true,
      formatter: (value: number) => formatTick(value, unit, max),
    },
    ...(name && axisName(name.text, name.gap)),
  };
}

/** Names of rows, first at the top; in a narrow box words take up to two lines, other names are cut. */
export function rowAxis(frame: Frame, rows: readonly string[], { words = false } = {}) {
  return {
    type: 'category' as const,
    inverse: true,
    data: [...rows],
    ...axisStyle(frame),
    axisTick: { show: false },
    axisLabel: {
      color: frame.theme.ink,
      interval: 0,
      ...(isNarrow(frame)
        ? {
            width: 124,
            overflow: words ? ('break' as const) : ('truncate' as const),
            fontSize: 11,
            lineHeight: 12,
          }
        : {}),
    },
  };
}

/** Name of an axis at its middle, below or next to the labels. */
export function axisName(name: string, gap: number) {
  return { name, nameLocation: 'middle' as const, nameGap: gap };
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** ECharts inserts tooltips as HTML, and operator and model names come from files. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}

const maxLength = 90;

/** Tooltip with a bold title and further lines, all escaped, long names cut. */
export function tip(title: string, ...lines: string[]): string {
  const [head = '', ...rest] = [title, ...lines].map((line) => escapeHtml(cutEnd(line, maxLength)));
  return [`<b>${head}</b>`, ...rest].join('<br>');
}

/** Tooltip of the item under the pointer. */
export function tipOf<T>(items: readonly T[], text: (item: T) => [title: string, ...lines: string[]]) {
  return {
    formatter: (params: unknown) => {
      const item = items[(params as { dataIndex: number }).dataIndex];
      return item === undefined ? '' : tip(...text(item));
    },
  };
}

/** Relative luminance above which black has more contrast on a color than white: (L + 0.05) / 0.05 > 1.05 / (L + 0.05) (WCAG 2). */
const lightLuminance = Math.sqrt(1.05 * 0.05) - 0.05;

/** Black or white, whichever has more contrast on `color`. */
export function textOn(color: string): string {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((from) => {
    const share = Number.parseInt(color.slice(from, from + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > lightLuminance ? '#000000' : '#ffffff';
}
