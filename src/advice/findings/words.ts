import { formatCount, formatQuantity, roundMeanCount, plural } from '../../vocabulary/format.js';
import { instancesOf, perInstance } from '../../vocabulary/stages.js';

export {
  formatCount as count,
  formatFactor as factor,
  formatMs as ms,
  formatPart as part,
  formatPercent as percent,
  plural,
} from '../../vocabulary/format.js';
export { everyInstance, instancesOf, instanceWord } from '../../vocabulary/stages.js';

/** A count that may be a mean, and a word about it: "2 gaps", "1.1 gaps over 0.1 ms on average". */
export function meanCount(count: number, singular: string, about = ''): string {
  const text = plural(roundMeanCount(count), singular);
  return `${text}${about}${text.includes('.') ? ' on average' : ''}`;
}

/** How often per instance of a stage: "once", "1.3 times on average", "63 times", below one half "once in 3 decode steps". */
export const times = (value: number, kind: string): string => timesIn(value, kind, '');

/** `times` where no sentence names the stage: "1.3 times per decode step on average". */
export const timesPer = (value: number, kind: string): string =>
  timesIn(value, kind, ` ${perInstance(kind)}`);

function timesIn(value: number, kind: string, per: string): string {
  if (value > 0 && value < 0.5) return `once in ${instancesOf(1 / value, kind)}`;
  const number = formatCount(value >= 10 ? Math.round(value) : value);
  return `${number === '1' ? 'once' : `${number} times`}${per}${number.includes('.') ? ' on average' : ''}`;
}

/** Calls per instance and the mean time of one: "8 calls of 0.136 ms". */
export const callsOf = ({ per_instance: calls, us }: { per_instance: number; us: number }): string =>
  `${plural(calls, 'call')} of ${formatQuantity(us, 'us')}`;
