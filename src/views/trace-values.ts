import type { Spread } from '../model/documents/trace.js';
import { kernelLabel } from '../vocabulary/kernel-label.js';
import type { Value } from './block.js';

export const number = { numeric: true } as const;
export const ns = (n: number): Value => ({ n, unit: 'ns' });
export const ratio = (n: number): Value => ({ n, unit: 'ratio' });
export const counted = (count: number): Value => ({ count });
export const bare = (n: number): Value => (Number.isInteger(n) ? { count: n } : { n, unit: '' });

/** A name that was not recorded, or the code that it is. */
export const codeOr = (name: string | null, missing: string): Value =>
  name === null ? { missing } : { code: name };

export const spread = (of: Spread | null, what: 'mean_ns' | 'median_ns'): Value =>
  of === null ? { missing: 'not recorded' } : ns(of[what]);

/** Demangled names run to kilobytes; the page's data has them whole. */
const longestHint = 400;

/** A kernel by its label, the full name where a medium shows it on demand. */
export const kernelNamed = (name: string, shortName: string, tile: string | null = null): Value => ({
  text: kernelLabel(name || shortName, tile),
  hint: name.length > longestHint ? `${name.slice(0, longestHint)}…` : name,
});
