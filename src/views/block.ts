import type { Document, Issue } from '../model/document.js';
import type { Figure } from '../model/figure.js';

/**
 * What a document looks like, without a medium: a view turns a document into blocks, and each medium (terminal, page,
 * Markdown, CSV) has one renderer for the closed set of blocks below. Nothing reads a block back.
 */

/** A value that a renderer formats. Plain strings are text; names from files are made harmless by every renderer. */
export type Value =
  | { figure: Figure; spread?: boolean; utilization?: boolean }
  /** A number in `unit` as `formatQuantity` takes it ("ms", "B", "tok/s", "ratio", "" for a bare number); `signed`: +4.2 %. */
  | { n: number; unit: string; digits?: number; signed?: boolean }
  /** A whole number of things. */
  | { count: number; unit?: string }
  /** Words that stand out. `hint` is shown where a medium can show it on demand. */
  | { text: string; tone?: 'fault' | 'strong' | 'dim'; hint?: string }
  /** Typed as it is: a command, a query, an identifier. */
  | { code: string }
  /** A value that is not there, and why. */
  | { missing: string };

/** Words with values between them. */
export type Text = string | Value | readonly (string | Value)[];

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

export type Block = { level?: Level } & (
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
  | { t: 'notes'; items: readonly Text[] }
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
  blocks: readonly Block[];
}

export interface View {
  /** The command that makes such documents: "import", "monitor". */
  command: string;
  title: string;
  document: Document<unknown>;
  session: { id: string | null; started_at: string };
  /** What is read first. */
  lead: readonly Block[];
  sections: readonly Section[];
}
