import type { Figure } from '../model/figure.js';

/** A value that a renderer formats. Plain strings are text; names from files are made harmless by every renderer. */
export type Value =
  /** `spread`: with its 95 % interval, its n and what the interval is; 'interval': with the interval alone. */
  | { figure: Figure; spread?: boolean | 'interval'; utilization?: boolean }
  /**
   * A number in `unit` as `formatQuantity` takes it ("ms", "B", "tok/s", "ratio", "" for a bare number);
   * `signed`: +4.2 %; `bare`: its column names the unit.
   */
  | { n: number; unit: string; digits?: number; signed?: boolean; bare?: true }
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
