import { formatCount } from '../../vocabulary/format.js';

export {
  formatBytes as mib,
  formatCount as count,
  formatMs as ms,
  formatPart as part,
  formatPercent as percent,
} from '../../vocabulary/format.js';
export { everyInstance, instanceWord } from '../../vocabulary/stages.js';

/** "1 kernel", "2 kernels", "0.9 stretches" for a mean count. */
export function plural(value: number, one: string, many = `${one}s`): string {
  const number = formatCount(value);
  return `${number} ${number === '1' ? one : many}`;
}

/** "once", "3 times", "1.3 times". */
export function times(value: number): string {
  const number = formatCount(value);
  return number === '1' ? 'once' : `${number} times`;
}
