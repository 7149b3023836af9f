import type { Spread } from '../model/documents/trace.js';
import { cutEnd } from '../vocabulary/cut.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import type { Value } from './block.js';

export const number = { numeric: true } as const;
export const ns = (n: number): Value => ({ n, unit: 'ns' });
export const ratio = (n: number): Value => ({ n, unit: 'ratio' });
export const countValue = (count: number): Value => ({ count });
export const unitless = (n: number): Value => (Number.isInteger(n) ? { count: n } : { n, unit: '' });

/** A name shown as code, or the reason why it was not recorded. */
export const codeOr = (name: string | null, missing: string): Value =>
  name === null ? { missing } : { code: name };

export const spread = (distribution: Spread | null, what: 'mean_ns' | 'median_ns'): Value =>
  distribution === null ? { missing: 'not recorded' } : ns(distribution[what]);

/** Maximum characters of a hint: demangled names can be kilobytes; the page's data has the full names. */
export const maxHintCharacters = 400;

/**
 * Kernels of one list by their labels, with the full name as a hint.
 * @param sentenceLabels labels of kernels that sentences next to the list name
 */
export function namedKernels(
  kernels: Iterable<{ name: string; tile?: string | null }>,
  sentenceLabels: ReadonlyMap<string, string> = new Map(),
): (name: string) => Value {
  const labels = kernelLabels(kernels);
  return (name) => ({
    text: sentenceLabels.get(name) ?? labels.get(name) ?? name,
    hint: cutEnd(name, maxHintCharacters),
  });
}
