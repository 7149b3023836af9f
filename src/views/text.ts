import type { Figure } from '../model/figure.js';

/** A value that a renderer formats. Plain strings are text; every renderer escapes names from files. */
export type Value =
  /** `spread`: with its 95 % interval, n and kind of interval; 'interval': with the interval only. */
  | { figure: Figure; spread?: boolean | 'interval'; utilization?: boolean }
  /**
   * A number in `unit` as in `formatQuantity` ("ms", "B", "tok/s", "ratio", "" for a bare number); `signed`: +4.2 %; `bare`: the unit is in
   * the column head; `of`: the total that it is a part of, in the same unit: shown in the unit and with the decimals of the total, as all
   * other parts; `half`: half width of the total's interval, which limits these decimals.
   */
  | {
      n: number;
      unit: string;
      digits?: number;
      signed?: boolean;
      bare?: true;
      of?: number;
      half?: number | null;
    }
  /** An integer count. */
  | { count: number; unit?: string }
  /** Emphasized words; `hint` is shown on demand if the medium can. */
  | { text: string; tone?: 'fault' | 'strong' | 'dim'; hint?: string }
  /** Verbatim text: a command, a query, an identifier. */
  | { code: string }
  /** A link to a page's anchor ("#finding-x") or to a URL. */
  | { link: string; text: string }
  /** A gain, ms: the expected interval and the achieved gain; on a page drawn on a scale up to `longestMs`. */
  | {
      gain: { lowMs: number; expectedMs: number; highMs: number; achievedMs: number | null };
      longestMs: number;
    }
  /** A missing value with its reason. */
  | { missing: string };

export type Part = string | Value;

/** Text with values in it. */
export type Text = Part | readonly Part[];

/** The commands of "inferscope run …, then inferscope explain …", each to be copied by itself. */
export const commandParts = (commands: string): Text =>
  commands.split(/(, then )/).map((text, index) => (index % 2 === 1 ? text : { code: text }));
