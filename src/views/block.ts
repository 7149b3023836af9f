import type { Document, Issue } from '../model/document.js';
import type { Chart } from './chart.js';
import type { Text } from './text.js';

/**
 * The closed set of blocks between views and renderers: a view turns a document into blocks, and each medium (terminal, page, Markdown,
 * CSV) has one renderer for them. No code reads text back out of a block.
 */

export type { Part, Text, Value } from './text.js';

/** Where a block is shown: 1 in every summary, 2 with details (`--verbose`, Markdown), 3 only on the page. Default: 1. */
export type Level = 1 | 2 | 3;

export interface Column {
  /** Name of the column in CSV, with its unit. */
  id: string;
  head: string;
  /** Aligns digits. */
  numeric?: boolean;
  /**
   * Wraps on a page. A terminal cuts it, with `true` only when all columns with `drop` are gone, with a number down to this many characters
   * before any column is dropped.
   */
  wraps?: boolean | number;
  /** In a terminal, wrapped over several lines instead of cut. */
  lines?: boolean;
  /** In a terminal, not a column but a line above the other cells of each row, because its texts are sentences. */
  above?: boolean;
  /** Cut at its end in a terminal, even if two cells then look alike: another column names the row. */
  endCut?: boolean;
  /** What its values are, stated below the table where the column is shown. */
  meaning?: string;
  /** Left out on a narrow terminal, the lowest number first. */
  drop?: number;
  /** Hidden on a page until a box above the table shows all columns; so are the first `drop` columns of a wide table. */
  detail?: boolean;
}

export interface Row {
  cells: readonly Text[];
  level?: Level;
}

export interface Table {
  type: 'table';
  title: Text;
  columns: readonly Column[];
  rows: readonly Row[];
  /** Maximum rows in a summary; the rest is counted. */
  brief?: number;
  /** On a page: a text field that filters the rows. */
  filter?: boolean;
  /** Leaves out columns without any value, and lists why values are missing below the table, each reason once. */
  reasons?: boolean;
  /** Marks at the end of cells; the meaning of each that is shown is below the table. */
  marks?: readonly { mark: string; meaning: string }[];
}

export interface Bar {
  name: string;
  /** Null if a side does not have it because only the roofline of the other is known. */
  ms: number | null;
  /** Text after the bar, most important first; a narrow line drops the last ones. */
  notes?: readonly Text[];
}

/** A chart with a text alternative. */
interface LabeledChart {
  label: string;
  chart: Chart;
}

/** Bars from the roofline to the measured time; they sum to the first total, ms. */
export interface BarSide {
  /** Column head, if there are several sides. */
  label: string;
  bars: readonly Bar[];
  /** Bars of a summary: the largest ones, and the others as one bar; all if absent. */
  brief?: readonly Bar[];
  totals: readonly { name: string; ms: number }[];
  /** Half width of the interval of the first total, ms, which limits the digits of all bars; null or absent without one. */
  halfInterval?: number | null;
  /** Drawn on a page; Markdown has the table behind it instead. */
  pageChart: LabeledChart;
}

/** The waterfall of one side, or of several sides next to each other with the same bars and totals in the same order. */
export interface Bars {
  type: 'bars';
  title: Text;
  sides: readonly BarSide[];
  /** Waterfall from the first side's total to the second's. */
  difference?: LabeledChart;
  behind: Block;
}

export interface FindingItem {
  /** Anchor on the page. */
  id: string;
  severity: 'high' | 'medium' | 'low' | 'info';
  title: string;
  /** At the end of the title: the expected gain or the affected time; "" if neither is known. */
  gain: Text;
  /** Expected gain with its interval; "" without one. */
  expected: Text;
  /** Link to its place in the timeline, on pages that have one. */
  place?: Text;
  change: string;
  /** As typed on a command line. */
  example: string | null;
  /** Contained in a larger finding, or without gain: not shown in a summary. */
  minor: boolean;
  facts: readonly Fact[];
  blocks: readonly Block[];
}

export type Fact = { level?: Level; name: string } & ({ text: Text } | { lines: string });

/**
 * `terminal: false`: not shown in a terminal, which has something shorter. `pages: false`: shown only there. `summary`: shown only in a terminal summary, since other media
 * contain what it links to.
 */
export type Block = { level?: Level; terminal?: false; pages?: false; summary?: true } &
  /** The key sentences. */
  (
    | {
        type: 'headline';
        sentences: readonly string[];
        /** One row per measurement: a name and its values; a narrow terminal drops cells from the third on. */
        rows?: readonly (readonly Text[])[];
      }
    | Bars
    /** Largest first; a summary shows `brief` of them, each only with its change. */
    | { type: 'findings'; brief: number; items: readonly FindingItem[] }
    /** Preformatted lines: a query, an example. */
    | { type: 'lines'; text: string }
    | { type: 'text'; text: Text }
    /** A heading inside a section. */
    | { type: 'heading'; text: Text }
    /** Names with their values, one per line. */
    | { type: 'facts'; items: readonly { name: string; text: Text }[] }
    /** `restated`: the same values are in an explanation's stage rows. */
    | { type: 'cards'; cards: readonly { label: string; value: Text; note?: Text }[]; restated?: boolean }
    | Table
    /** Drawn on a page; other media show the table behind it. `half`: half the width of a wide page. */
    | ({ type: 'chart'; behind: Block; title?: Text; half?: boolean } & LabeledChart)
    /** `brief`: maximum items in a summary; the rest is counted. */
    | { type: 'notes'; items: readonly Text[]; brief?: number }
    | { type: 'issues'; issues: readonly Issue[] }
    | { type: 'missing'; what: string; why: string }
    | { type: 'commands'; items: readonly { command: string; why: string }[] }
    /** Collapsed on a page; in a terminal the blocks follow the title. */
    | { type: 'fold'; title: string; blocks: readonly Block[] }
  );

export interface Section {
  /** Anchor on the page. */
  id: string;
  title: string;
  level?: Level;
  /** Half the width of a wide page. */
  half?: boolean;
  /** The same values are in an explanation's stage rows: left out of a summary with such rows. */
  restated?: boolean;
  /** What the command was asked for: a summary shows all of it, last, and its line limit does not apply. */
  requested?: true;
  /** The blocks have their own titles: a terminal prints none above them. */
  untitled?: boolean;
  blocks: readonly Block[];
}

export interface View {
  /** The command that makes such documents: "import", "monitor". */
  command: string;
  title: string;
  document: Document<unknown>;
  session: { id: string | null; started_at: string };
  /** The part of the session's explanation to show with this view; all if absent. Sentences and waterfalls are about time. */
  explains?: 'findings';
  /** Shown first. */
  lead: readonly Block[];
  sections: readonly Section[];
}
