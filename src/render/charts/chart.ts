import type { EChartsOption } from 'echarts';
import type { ProfileResult } from '../../model/documents/profile.js';
import { nbsp } from '../../vocabulary/format.js';
import type { Theme } from '../palette.js';

/** What a chart is made from; everything in it is typed data that the page holds once. */
export interface ChartInput<R = ProfileResult> {
  result: R;
  /** Which part of the result: a stage kind for charts that exist once a stage, else "". */
  part: string;
  theme: Theme;
  /** Width of the box, CSS pixels: below 500 labels give way. */
  width: number;
}

/** What a colour means; of a line, with its symbol and dash. */
export interface KeyEntry {
  name: string;
  color: string;
  line?: { symbol: string; dash: 'solid' | 'dashed' | 'dotted' };
}

export interface Chart<R = ProfileResult> {
  build: (input: ChartInput<R>) => EChartsOption;
  /** Height of the box, CSS pixels. */
  height: (result: R, part: string) => number;
  /** SVG by default; thousands of shapes need a canvas. */
  renderer?: (result: R) => 'svg' | 'canvas';
  /** What its colours mean, where the chart has no labels for them. */
  key?: (result: R, part: string, theme: Theme) => KeyEntry[];
  /** The x axis zooms: by slider, Ctrl + wheel, and keys on the focused chart. */
  zooms?: boolean;
}

export const fontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/** Whether labels have room beside the marks. */
export const isNarrow = (width: number): boolean => width < 500;

export function base({ theme }: { theme: Theme }): EChartsOption {
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

/** Grid whose box, axis labels and names included, keeps to the margins. */
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

export function axisStyle({ theme }: { theme: Theme }) {
  return {
    axisLine: { lineStyle: { color: theme.line } },
    axisTick: { lineStyle: { color: theme.line } },
    axisLabel: { color: theme.muted, fontSize: 12 },
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } },
  };
}

/** Label of a time axis of `spanS` seconds: with a decimal where whole seconds would repeat. */
export function secondsLabel(spanS: number): (value: number) => string {
  const decimals = spanS < 8 ? 1 : 0;
  return (value) => `${value.toFixed(decimals)}${nbsp}s`;
}

/**
 * How an axis of bytes is divided, and its labels: in one unit, which the largest value decides.
 * @param most largest value, bytes
 */
export function byteAxis(most: number): { bytes: number; label: (bytes: number) => string } {
  const [bytes, name] =
    most >= 2 ** 30 ? [2 ** 30, 'GiB'] : most >= 2 ** 20 ? [2 ** 20, 'MiB'] : [2 ** 10, 'KiB'];
  return { bytes, label: (value) => `${Number((value / bytes).toPrecision(6))}${nbsp}${name}` };
}

/** Name of a value axis in its middle, below or beside the labels. */
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

/** ECharts puts tooltips in the page as HTML; operator and model names come from files. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}

const longest = 90;

/** Tooltip of a bold title and lines below it, all escaped, long names cut. */
export function tip(title: string, ...lines: string[]): string {
  const [head = '', ...rest] = [title, ...lines].map((line) =>
    escapeHtml(line.length > longest ? `${line.slice(0, longest)}…` : line),
  );
  return [`<b>${head}</b>`, ...rest].join('<br>');
}

/** Black or white, whichever can be read on `color`. */
export function textOn(color: string): string {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((from) => Number.parseInt(color.slice(from, from + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#000000' : '#ffffff';
}
