import { formatCount } from '../../vocabulary/format.js';

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

/** "once", "3 times", "1.3 times", "63 times", for means below one "0.3 times on average". */
export function times(value: number): string {
  const number = formatCount(value >= 10 ? Math.round(value) : value);
  return number === '1' ? 'once' : `${number} times${value < 0.95 ? ' on average' : ''}`;
}
