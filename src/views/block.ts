import type { Document, Issue } from '../model/document.js';
import type { Figure } from '../model/figure.js';

/**
 * What a document looks like, without a medium: a view turns a document into blocks, and each medium (terminal, page,
 * Markdown, CSV) has one renderer for the closed set of blocks below. Nothing reads a block back.
 */

/** A value that a renderer formats. Plain strings are text; names from files are made harmless by every renderer. */
export type Value =
  /** `spread`: with its 95 % interval, its n and what the interval is; 'interval': with the interval alone. */
  | { figure: Figure; spread?: boolean | 'interval'; utilization?: boolean }
  /** A number in `unit` as `formatQuantity` takes it ("ms", "B", "tok/s", "ratio", "" for a bare number); `signed`: +4.2 %. */
  | { n: number; unit: string; digits?: number; signed?: boolean }
  /** A whole number of things. */
  | { count: number; unit?: string }
  /** Words that stand out. `hint` is shown where a medium can show it on demand. */
  | { text: string; tone?: 'fault' | 'strong' | 'dim'; hint?: string }
  /** Typed as it is: a command, a query, an identifier. */
  | { code: string }
  /** Leads to a page's anchor ("#finding-x") or to an address. */
  | { link: string; text: string }
  /** A gain, ms: the interval that was promised and what was achieved; a page draws it, all on the scale to `longestMs`. */
  | {
      gain: { lowMs: number; expectedMs: number; highMs: number; achievedMs: number | null };
      longestMs: number;
    }
  /** A value that is not there, and why. */
  | { missing: string };

export type Part = string | Value;

/** Words with values between them. */
export type Text = Part | readonly Part[];

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
  /** May wrap on a page, and is cut first in a terminal. */
  wraps?: boolean;
  /** Left out on a narrow terminal, the lowest number first. */
  drop?: number;
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

/** `wholeNote`: never cut to the line. */
export interface Bar {
  name: string;
  ms: number;
  note?: Text;
  wholeNote?: boolean;
}

/** A chart of a source other than the page's document, by its registry name. */
interface SourcedChart {
  name: string;
  part: string;
  source: string;
  label: string;
}

/** A time from what the hardware allows to what was measured: the bars sum to the first total, ms. */
export interface BarSide {
  /** Heads its column, where there are several sides. */
  label: string;
  bars: readonly Bar[];
  /** Of a summary: the largest, and the others as one; without it all. */
  brief?: readonly Bar[];
  totals: readonly { name: string; ms: number }[];
  /** On a page; in Markdown the table behind stands for it. */
  chart: SourcedChart;
}

/** The waterfall of one side, or those of several next to each other: then all have the same bars and totals in the same order. */
export interface Bars {
  t: 'bars';
  title: Text;
  sides: readonly BarSide[];
  /** From the first side's total to the second's. */
  difference?: SourcedChart;
  /** Why there is no limit among the bars. */
  missing?: string;
  behind: Block;
}

export interface FindingItem {
  /** Anchor on the page. */
  id: string;
  severity: 'high' | 'medium' | 'low' | 'info';
  title: string;
  /** At the end of the title: what is expected or at stake; "" where nothing is. */
  gain: Text;
  /** In a summary one line follows the title. */
  change: string;
  /** Below a larger finding, or nothing to gain: not in a summary. */
  minor: boolean;
  facts: readonly Fact[];
  blocks: readonly Block[];
}

export type Fact = { level?: Level; name: string } & ({ text: Text } | { lines: string });

/**
 * `terminal: false`: left out of a terminal, where something shorter says the same.
 */
export type Block = { level?: Level; terminal?: false } &
  /** What a reader in a hurry reads: some sentences. */
  (
    | { t: 'headline'; sentences: readonly string[] }
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
    | { t: 'cards'; cards: readonly { label: string; value: Text; note?: Text }[] }
    | Table
    /**
     * Drawn on a page from the page's document by the chart of that name; elsewhere the table behind it. `half`: next to its
     * neighbour where a page is wide.
     */
    | { t: 'chart'; name: string; part?: string; label: string; behind: Block; title?: Text; half?: boolean }
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
  /** On a wide page next to its neighbour. */
  half?: boolean;
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
  /** Data of charts whose source is not the document, by the name of their source. */
  sources?: Readonly<Record<string, unknown>>;
}
