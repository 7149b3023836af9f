import { formatCount, formatQuantity, plural } from '../../vocabulary/format.js';
import { instancesOf, perInstance } from '../../vocabulary/stages.js';

export {
  formatBytes as mib,
  formatCount as count,
  formatFactor as factor,
  formatMs as ms,
  formatPart as part,
  formatPercent as percent,
  plural,
} from '../../vocabulary/format.js';
export { everyInstance, instancesOf, instanceWord } from '../../vocabulary/stages.js';

/** How often per instance of a stage: "once", "0.6 times", "63 times", below one half "once in 3 decode steps". */
export function times(value: number, kind: string): string {
  if (value > 0 && value < 0.5) return `once in ${instancesOf(1 / value, kind)}`;
  const number = formatCount(value >= 10 ? Math.round(value) : value);
  return number === '1' ? 'once' : `${number} times`;
}

/** `times` where no sentence names the stage: "1.3 times per decode step". */
export function timesPer(value: number, kind: string): string {
  const text = times(value, kind);
  return value > 0 && value < 0.5 ? text : `${text} ${perInstance(kind)}`;
}

/** Calls per instance and the mean time of one: "8 calls of 0.136 ms". */
export const callsOf = ({ per_instance: calls, us }: { per_instance: number; us: number }): string =>
  `${plural(calls, 'call')} of ${formatQuantity(us, 'us')}`;
