import type { PhaseKind } from '../../model/documents/trace.js';
import { formatNs, formatShare } from '../../facts/trace/words.js';

/** "4.71 ms", "84.1 µs" of milliseconds. */
export const ms = (value: number): string => formatNs(value * 1e6);

/** "12 %" of a part. */
export const part = (of: number, whole: number): string => formatShare(whole > 0 ? of / whole : 0);

/** "a decode step", "a prefill", "the capture". */
export function aStage(kind: PhaseKind): string {
  if (kind === 'outside') return 'the capture';
  if (kind === 'other') return 'a step';
  return kind === 'decode' || kind === 'mixed' ? `a ${kind} step` : `a ${kind}`;
}

/** "every decode step", "every prefill", "the capture". */
export function everyStage(kind: PhaseKind): string {
  return kind === 'outside' ? 'the capture' : aStage(kind).replace(/^a /, 'every ');
}

/** "3.0", "22", "1 100" of a count that is a mean. */
export function count(value: number): string {
  const rounded = Math.round(value);
  return Math.abs(value - rounded) < 0.05 || value >= 100 ? String(rounded) : value.toFixed(1);
}

/** "1 kernel", "2 kernels", "0.9 stretches" of a count that is a mean. */
export function plural(value: number, one: string, many = `${one}s`): string {
  const number = count(value);
  return `${number} ${number === '1' ? one : many}`;
}

/** "once", "3 times", "1.3 times". */
export function times(value: number): string {
  const number = count(value);
  return number === '1' ? 'once' : `${number} times`;
}

/** "64.0 MiB", "2500 MiB", "0.03 MiB". */
export function mib(bytes: number): string {
  const value = bytes / 2 ** 20;
  return `${value >= 100 ? Math.round(value) : value.toPrecision(3)} MiB`;
}

/** "30 %" of a share. */
export const percent = (share: number): string => `${Math.round(100 * share)} %`;
