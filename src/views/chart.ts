import type { Colour, Dash, LineSymbol } from '../vocabulary/colours.js';
import type { Text } from './text.js';

/** The closed set of chart forms: a view gives typed series with their units, a page has one renderer per form. */
export type Chart =
  | LinesChart
  | BarsChart
  | WaterfallChart
  | SpreadChart
  | HeatChart
  | RooflineChart
  | TimelineChart;

/** `x` counts categories, or is in the axis's unit; `y` is null where nothing was measured. */
export type Point = readonly [
  x: number,
  y: number | null,
  more?: { ci95?: readonly [number, number] | null; notes?: readonly Text[]; outlier?: boolean },
];

export interface Series {
  name: string;
  color: Colour;
  symbol?: LineSymbol;
  dash?: Dash;
  points: readonly Point[];
  /**
   * guide: thin, says what no measurement says; dots: points without a line; stack: those of a panel lie on each other and
   * hold from the point before; pale: behind the others, unnamed.
   */
  style?: 'guide' | 'dots' | 'stack' | 'pale';
}

export interface Panel {
  title?: string;
  unit: string;
  series: readonly Series[];
  /** The axis ends there. */
  most?: number;
  /** The axis may start above 0. */
  scaled?: boolean;
  bounds?: readonly { name: string; value: number; ci95?: readonly [number, number] | null }[];
}

/** Lines over one x axis, a panel per unit or metric. */
export interface LinesChart {
  form: 'lines';
  x: { name: string } & ({ categories: readonly string[] } | { unit: 's' | '' });
  panels: readonly Panel[];
  /** Behind the lines; without a color it is named where its name fits, else it is in the key. */
  shades?: readonly { name: string; from: number; to: number; color?: Colour }[];
  /** On a line, or, without `y`, over the whole height. */
  marks?: readonly { x: number; y?: number; name: string; color: Colour }[];
  small?: boolean;
}

/** shares: each row of its own whole; stacked: columns; multiples: of the first series. */
export interface BarsChart {
  form: 'bars';
  kind: 'shares' | 'stacked' | 'multiples';
  unit: string;
  /** Title of the axis of the rows (stacked) or of the values (multiples). */
  axis?: string;
  rows: readonly string[];
  series: readonly { name: string; color: Colour; values: readonly (number | null)[] }[];
}

export interface WaterfallBar {
  name: string;
  value: number;
  meaning: string;
  color: Colour;
  /** Not needed for the result: drawn lighter. */
  light?: boolean;
  confidence?: string | null;
  /** A click on the bar leads there. */
  link?: string;
}

/** Bars that start where the previous one ended, up to a total; without a total each starts at 0. */
export interface WaterfallChart {
  form: 'waterfall';
  unit: string;
  bars: readonly WaterfallBar[];
  total?: { name?: string; value: number; meaning: string; whole: string };
  /** What takes the whole width, for charts next to each other: these have all their bars, seen or not. */
  longest?: number;
  /** The bars are changes of the first one: with their sign. */
  signed?: boolean;
}

/** Distributions, each against its own median. */
export interface SpreadChart {
  form: 'spread';
  unit: string;
  rows: readonly {
    name: string;
    color: Colour;
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
  /** Many rows: cells are low and have no text; it is in their tips. */
  slim?: boolean;
  x: { name: string; values: readonly string[] };
  y: { name: string; values: readonly string[] };
  /** What shades mean, the faintest first. */
  shades?: readonly { name: string; shade: number }[];
  /** `shade`: 0 (faint) to 1 (strong); null: no value. Where there is little room the first line is shown alone. */
  cells: readonly {
    x: number;
    y: number;
    shade: number | null;
    lines: readonly Text[];
    notes: readonly Text[];
  }[];
}

/** Achieved FLOP/s against arithmetic intensity, log-log. */
export interface RooflineChart {
  form: 'roofline';
  slopes: readonly { name: string; bytes_per_s: number; detail?: Text }[];
  peaks: readonly { dtype: string; flops_per_s: number }[];
  ridge: number | null;
  points: readonly {
    name: string;
    /** Its entry in the key; null writes the name at the point. */
    group: string | null;
    color: Colour;
    symbol: LineSymbol;
    intensity: number;
    flops_per_s: number;
    notes: readonly Text[];
    /** Where a click on it leads. */
    link?: string;
  }[];
}

export interface TimelineChart {
  form: 'timeline';
  dur_ns: number;
  lanes: readonly string[];
  /** What spans are: label, color, further lines. */
  kinds: readonly { label: string; color: Colour; title: string; notes: readonly string[] }[];
  spans: readonly (readonly [lane: number, start_ns: number, dur_ns: number, kind: number])[];
  key: readonly KeyEntry[];
}

/** What a color means; of a line, with its symbol and dash. */
export interface KeyEntry {
  name: string;
  color: Colour;
  symbol?: LineSymbol;
  dash?: Dash;
}
