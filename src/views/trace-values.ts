import type { Spread } from '../model/documents/trace.js';
import { kernelLabel } from '../vocabulary/kernel-label.js';
import type { Value } from './block.js';

export const number = { numeric: true } as const;
export const ns = (n: number): Value => ({ n, unit: 'ns' });
export const ratio = (n: number): Value => ({ n, unit: 'ratio' });
export const counted = (count: number): Value => ({ count });
export const unitless = (n: number): Value => (Number.isInteger(n) ? { count: n } : { n, unit: '' });

/** A name shown as code, or the reason why it was not recorded. */
export const codeOr = (name: string | null, missing: string): Value =>
  name === null ? { missing } : { code: name };

export const spread = (distribution: Spread | null, what: 'mean_ns' | 'median_ns'): Value =>
  distribution === null ? { missing: 'not recorded' } : ns(distribution[what]);

/** Maximum characters of a hint: demangled names can be kilobytes; the page's data has the full names. */
const longestHint = 400;

/** A kernel by its label, with the full name as a hint. */
export const kernelNamed = (name: string, shortName: string, tile: string | null = null): Value => ({
  text: kernelLabel(name || shortName, tile),
  hint: name.length > longestHint ? `${name.slice(0, longestHint)}…` : name,
});
