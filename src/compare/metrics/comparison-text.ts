import type { ComparedMetric } from '../../model/documents/bench-compare.js';
import { formatPercent, formatSigned } from '../../vocabulary/format.js';

/** Why a difference has no interval: a side has a single value, or a value is 0, which has no logarithm. */
export const whyNoSpread = (n: readonly [number, number]): string =>
  Math.min(...n) > 1
    ? 'with a value of 0: the difference has no interval, so nothing is claimed'
    : 'with one value on a side: how far launches differ is not known, so nothing is claimed';

/** The result in one sentence. */
export function comparisonText(compared: Omit<ComparedMetric, 'text'>): string {
  const { verdict, change_ci95: interval } = compared;
  if (verdict === 'missing') return `only the ${compared.base === null ? 'second' : 'first'} side has it`;
  const signedChange = compared.change === null ? 'no ratio to 0' : formatSigned(compared.change, 'ratio');
  const range = interval
    ? ` (${formatSigned(interval[0], 'ratio')} to ${formatSigned(interval[1], 'ratio')})`
    : '';
  switch (verdict) {
    case 'no_spread':
      return `${signedChange}, ${whyNoSpread(compared.n)}`;
    case 'within_process':
      return `${signedChange}${range} by the scatter inside one process; other launches may differ by more, so nothing is claimed`;
    case 'worse':
    case 'better':
      return `${verdict}: ${signedChange}${range}`;
    default:
      return `not significant${interval ? `; more than ${formatPercent(Math.max(...interval.map(Math.abs)))} is ruled out` : ': nothing is ruled out either'}`;
  }
}
