import type { Figure } from '../model/figure.js';
import { formatNumber, formatPercent, nbsp, noValue } from './format.js';

/** A share of a peak: two digits also far below 1 %, where launch-bound programs are: 71 %, 4.2 %, 0.031 %. */
export function utilizationShare(figure: Figure): string {
  if (figure.value === null) return noValue;
  const percent = 100 * figure.value;
  return percent !== 0 && Math.abs(percent) < 0.1
    ? `${formatNumber(percent, 2)}${nbsp}%`
    : formatPercent(figure.value);
}
