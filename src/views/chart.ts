import type { Color, Dash, LineSymbol } from '../vocabulary/colors.js';
import type { Text } from './text.js';

/** The closed set of charts: a view gives typed series with units, and a page has one renderer per form. */
export type Chart =
  | LinesChart
  | BarsChart
  | WaterfallChart
  | SpreadChart
  | HeatChart
  | RooflineChart
  | TimelineChart;

/** `x` is a category index or in the axis's unit; `y` is null if not measured. */
export type Point = readonly [
  x: number,
  y: number | null,
  more?: { ci95?: readonly [number, number] | null; notes?: readonly Text[]; outlier?: boolean },
];

export interface Series {
  name: string;
  color: Color;
  symbol?: LineSymbol;
  dash?: Dash;
  points: readonly Point[];
  /**
   * guide: thin line that is not a measurement; dots: points without a line; stack: series of a panel are stacked and constant until the
   * next point; pale: in the background, not in the key.
   */
  style?: 'guide' | 'dots' | 'stack' | 'pale';
}

export interface Panel {
  title?: string;
  unit: string;
  series: readonly Series[];
  /** Maximum of the axis. */
  max?: number;
  /** The axis need not start at 0. */
  scaled?: boolean;
  bounds?: readonly { name: string; value: number; ci95?: readonly [number, number] | null }[];
}

/** Lines over one x axis, with one panel per unit or metric. */
export interface LinesChart {
  form: 'lines';
  x: { name: string } & (
    | { categories: readonly string[] }
    /** `range`: first and last value of the axis, for charts below each other; default: of the points. */
    | { unit: 's' | ''; range?: readonly [number, number] }
  );
  panels: readonly Panel[];
  /** Areas behind the lines; without a color the name is written where it fits, else it is in the key. */
  shades?: readonly { name: string; from: number; to: number; color?: Color }[];
  /** On a line, or over the whole height without `y`. */
  marks?: readonly { x: number; y?: number; name: string; color: Color }[];
  small?: boolean;
}

/** shares: each row scaled to 100 %; stacked: columns; multiples: relative to the first series. */
export interface BarsChart {
  form: 'bars';
  kind: 'shares' | 'stacked' | 'multiples';
  unit: string;
  /** Title of the row axis (stacked) or the value axis (multiples). */
  axis?: string;
  rows: readonly string[];
  series: readonly { name: string; color: Color; values: readonly (number | null)[] }[];
}

export interface WaterfallBar {
  name: string;
  value: number;
  meaning: string;
  color: Color;
  /** Drawn lighter: not needed for the result. */
  light?: boolean;
  confidence?: string | null;
  /** Link of the bar. */
  link?: string;
}

/** Bars that start where the previous one ended, up to a total; without a total each bar starts at 0. */
export interface WaterfallChart {
  form: 'waterfall';
  unit: string;
  bars: readonly WaterfallBar[];
  total?: { name?: string; value: number; meaning: string; shareOf: string };
  /** Half width of the total's interval, which limits the digits of all bars. */
  halfInterval?: number | null;
  /** Value of the full width, for charts next to each other; these also keep bars too small to see. */
  longest?: number;
  /** Bars after the first are signed changes of it. */
  signed?: boolean;
}

/** Distributions, each relative to its own median. */
export interface SpreadChart {
  form: 'spread';
  unit: string;
  rows: readonly {
    name: string;
    color: Color;
    min: number;
    box: readonly [number, number];
    median: number;
    max: number;
    notes: readonly Text[];
    dots: readonly { value: number; outlier: boolean; note: Text }[];
  }[];
  key: readonly KeyEntry[];
}

export interface HeatChart {
  form: 'heat';
  /** Many rows: low cells without text, which is in their tooltips. */
  slim?: boolean;
  x: { name: string; values: readonly string[] };
  y: { name: string; values: readonly string[] };
  /** Labels of the shades, lightest first. */
  shades?: readonly { name: string; shade: number }[];
  /** `shade`: 0 (light) to 1 (dark); null: no value. With little room only the first line is shown. */
  cells: readonly {
    x: number;
    y: number;
    shade: number | null;
    lines: readonly Text[];
    notes: readonly Text[];
  }[];
}

/** Achieved FLOP/s against arithmetic intensity, both logarithmic. */
export interface RooflineChart {
  form: 'roofline';
  slopes: readonly { name: string; bytes_per_s: number; detail?: Text }[];
  peaks: readonly { dtype: string; flops_per_s: number }[];
  ridge: number | null;
  points: readonly {
    name: string;
    /** Its entry in the key; null writes the name next to the point. */
    group: string | null;
    color: Color;
    symbol: LineSymbol;
    intensity: number;
    flops_per_s: number;
    notes: readonly Text[];
    /** Link of the point. */
    link?: string;
  }[];
}

export interface TimelineChart {
  form: 'timeline';
  dur_ns: number;
  lanes: readonly string[];
  /** Kinds of spans: label, color, further lines. */
  kinds: readonly { label: string; color: Color; title: string; notes: readonly string[] }[];
  spans: readonly (readonly [lane: number, start_ns: number, dur_ns: number, kind: number])[];
  key: readonly KeyEntry[];
}

/** An entry of the chart's key; for a line with its symbol and dash. */
export interface KeyEntry {
  name: string;
  color: Color;
  symbol?: LineSymbol;
  dash?: Dash;
}
