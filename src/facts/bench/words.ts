import type { BenchPoint } from '../../model/bench.js';
import { type Figure, halfInterval } from '../../model/figure.js';
import { formatNs, formatRate, formatShare } from '../trace/words.js';

/** "batch 4, 128 → 64". */
export const pointWords = ({
  batch_size,
  input_len,
  output_len,
}: Omit<BenchPoint, 'point' | 'parts'>): string => `batch ${batch_size}, ${input_len} → ${output_len}`;

export const ms = (value: number): string =>
  value < 0 ? `−${formatNs(-value * 1e6)}` : formatNs(value * 1e6);

/** "1.9", "0.043", "12". */
export const number = (value: number, digits = 3): string =>
  Math.abs(value) >= 100 ? formatRate(value) : String(Number(value.toPrecision(digits))).replace('-', '−');

/** "1.00 times", "0.99 times", "18.5 times", "1 830 times". */
export const times = (value: number): string =>
  `${value >= 100 ? number(value) : value.toPrecision(value < 1 ? 2 : 3)} times`;

/** "12 %", "0.4 %", and where that would be 0.0 two digits: "0.018 %". */
export const shareWords = (share: number): string =>
  share > 0 && share < 1e-3 ? `${Number((100 * share).toPrecision(2))} %` : formatShare(share);

/** A sentence as part of another: without its full stop, and its first word small where that is no name. */
export const unended = (text: string): string =>
  text
    .trimEnd()
    .replace(/\.+$/, '')
    .replace(/^(?:The|An?|It|There) /, (word) => word.toLowerCase());

/** "12.3 ms ± 0.4"; null when there is no value. */
export function msWords(figure: Figure): string | null {
  if (figure.value === null) return null;
  const half = halfInterval(figure);
  return half === null ? ms(figure.value) : `${ms(figure.value)} ± ${ms(half)}`;
}

export function rateWords(figure: Figure): string | null {
  if (figure.value === null) return null;
  const half = halfInterval(figure);
  return `${number(figure.value)}${half === null ? '' : ` ± ${number(half, 2)}`} tok/s`;
}

/** "a, b and c". */
export const listed = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
