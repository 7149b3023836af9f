import type { Document, Issue } from '../model/document.js';
import type { Chart } from './chart.js';
import type { Text } from './text.js';

/**
 * What a document looks like, without a medium: a view turns a document into blocks, and each medium (terminal, page,
 * Markdown, CSV) has one renderer for the closed set of blocks below. Nothing reads a block back.
 */

export type { Part, Text, Value } from './text.js';

/**
 * Who sees it: 1 in every summary, 2 where details were asked for (`--verbose`, Markdown), 3 on the page only. Without one: 1.
 */
export type Level = 1 | 2 | 3;

export interface Column {
  /** Names the column in CSV: a name with its unit. */
  id: string;
  head: string;
  /** Digits under digits. */
  numeric?: boolean;
  /**
   * May wrap on a page, and is cut in a terminal: after other columns were left out, or down to so many characters before
   * they are.
   */
  wraps?: boolean | number;
  /** In a terminal on several lines instead of cut. */
  lines?: boolean;
  /** Left out on a narrow terminal, the lowest number first. */
  drop?: number;
  /** On a page only with all columns, which a box above the table shows; so are the first `drop` columns of a wide table. */
  detail?: boolean;
}

export interface Row {
  cells: readonly Text[];
  level?: Level;
}

export interface Table {
  t: 'table';
  title: Text;
  columns: readonly Column[];
  rows: readonly Row[];
  /** Rows in a summary; the rest is counted. */
  brief?: number;
  /** On a page: a field that hides the rows without the typed text. */
  filter?: boolean;
  /** Columns without any value are left out, and why values are missing is said below, once per reason. */
  reasons?: boolean;
}

/** `notes`: what stands behind the bar, the most important first; a narrow line leaves out the last ones. */
export interface Bar {
  name: string;
  ms: number;
  notes?: readonly Text[];
}

/** A chart with the words that name it for those who do not see it. */
interface LabelledChart {
  label: string;
  chart: Chart;
}

/** A time from what the hardware allows to what was measured: the bars sum to the first total, ms. */
export interface BarSide {
  /** Heads its column, where there are several sides. */
  label: string;
  bars: readonly Bar[];
  /** Bars of a summary: the largest, and the others as one; all if absent. */
  brief?: readonly Bar[];
  totals: readonly { name: string; ms: number }[];
  /** On a page; in Markdown the table behind stands for it. */
  drawn: LabelledChart;
}

/** The waterfall of one side, or those of several next to each other: then all have the same bars and totals in the same order. */
export interface Bars {
  t: 'bars';
  title: Text;
  sides: readonly BarSide[];
  /** From the first side's total to the second's. */
  difference?: LabelledChart;
  behind: Block;
}

export interface FindingItem {
  /** Anchor on the page. */
  id: string;
  severity: 'high' | 'medium' | 'low' | 'info';
  title: string;
  /** At the end of the title: the expected gain or the affected time; "" where nothing is. */
  gain: Text;
  /** What is expected with its interval; "" where nothing is. */
  expected: Text;
  /** Where it is seen in the timeline, on pages that have one. */
  place?: Text;
  change: string;
  /** As it would be typed. */
  example: string | null;
  /** Below a larger finding, or nothing to gain: not in a summary. */
  minor: boolean;
  facts: readonly Fact[];
  blocks: readonly Block[];
}

export type Fact = { level?: Level; name: string } & ({ text: Text } | { lines: string });

/**
 * `terminal: false`: left out of a terminal, where something shorter says the same. `summary`: in a summary of a terminal only,
 * for what it leads to is everywhere else.
 */
export type Block = { level?: Level; terminal?: false; summary?: true } &
  /** What a reader in a hurry reads: some sentences. */
  (
    | {
        t: 'headline';
        sentences: readonly string[];
        /** What was measured, a row each: a name and what is known of it; a narrow terminal drops cells from the third on. */
        rows?: readonly (readonly Text[])[];
      }
    | Bars
    /** The largest first; `brief` of them in a summary, with their change only. */
    | { t: 'findings'; brief: number; items: readonly FindingItem[] }
    /** Lines as they are: a query, an example. */
    | { t: 'lines'; text: string }
    | { t: 'text'; text: Text }
    /** A heading inside a section. */
    | { t: 'heading'; text: Text }
    /** Names and what they are, one below the other. */
    | { t: 'facts'; items: readonly { name: string; text: Text }[] }
    /** `restated`: an explanation's rows of stages say the same. */
    | { t: 'cards'; cards: readonly { label: string; value: Text; note?: Text }[]; restated?: boolean }
    | Table
    /** Drawn on a page; elsewhere the table behind it. `half`: next to its neighbor where a page is wide. */
    | ({ t: 'chart'; behind: Block; title?: Text; half?: boolean } & LabelledChart)
    /** `brief`: items in a summary; the rest is counted. */
    | { t: 'notes'; items: readonly Text[]; brief?: number }
    | { t: 'issues'; issues: readonly Issue[] }
    | { t: 'missing'; what: string; why: string }
    | { t: 'commands'; items: readonly { command: string; why: string }[] }
    /** Folded on a page; in a terminal its blocks follow the title. */
    | { t: 'fold'; title: string; blocks: readonly Block[] }
  );

export interface Section {
  /** Anchor on the page. */
  id: string;
  title: string;
  level?: Level;
  /** On a wide page next to its neighbor. */
  half?: boolean;
  /** An explanation's rows of stages say the same: left out of a summary that has them. */
  restated?: boolean;
  /** Its blocks name themselves: a terminal prints no title above them. */
  untitled?: boolean;
  blocks: readonly Block[];
}

export interface View {
  /** The command that makes such documents: "import", "monitor". */
  command: string;
  title: string;
  document: Document<unknown>;
  session: { id: string | null; started_at: string };
  /** What of its session's explanation belongs to it: sentences and waterfalls are about time. Without one: all. */
  explains?: 'findings';
  /** What is read first. */
  lead: readonly Block[];
  sections: readonly Section[];
}
