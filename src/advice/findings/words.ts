import { formatCount } from '../../vocabulary/format.js';

export {
  formatBytes as mib,
  formatCount as count,
  formatMs as ms,
  formatPart as part,
  formatPercent as percent,
  plural,
} from '../../vocabulary/format.js';
export { everyInstance, instanceWord } from '../../vocabulary/stages.js';

/** "once", "3 times", "1.3 times". */
export function times(value: number): string {
  const number = formatCount(value);
  return number === '1' ? 'once' : `${number} times`;
}
