import type { ComparedMetric } from '../../model/documents/bench-compare.js';

export const percent = (share: number): string => {
  const value = Math.abs(share) * 100;
  return `${value.toFixed(value < 9.95 ? 1 : 0)} %`;
};

export const change = (share: number): string => `${share < 0 ? '−' : '+'}${percent(share)}`;

/** The finding in one sentence. */
export function comparisonText(one: Omit<ComparedMetric, 'text'>): string {
  const { verdict, change_ci95: interval } = one;
  if (verdict === 'missing') return `only the ${one.base === null ? 'second' : 'first'} side has it`;
  const moved = one.change === null ? 'no ratio to 0' : change(one.change);
  const range = interval ? ` (${change(interval[0])} to ${change(interval[1])})` : '';
  switch (verdict) {
    case 'no_spread':
      return `${moved}, with one value on a side: how far launches differ is not known, so nothing is claimed`;
    case 'within_process':
      return `${moved}${range} by the scatter inside one process; other launches may differ by more, so nothing is claimed`;
    case 'worse':
    case 'better':
      return `${verdict}: ${moved}${range}`;
    default:
      return `no real difference${interval ? `; more than ${percent(Math.max(...interval.map(Math.abs)))} is ruled out` : ': nothing is ruled out either'}`;
  }
}
