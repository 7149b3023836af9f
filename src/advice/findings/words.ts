import type { PhaseKind } from '../../model/documents/trace.js';
import { formatCount } from '../../vocabulary/format.js';

export {
  formatBytes as mib,
  formatCount as count,
  formatMs as ms,
  formatPart as part,
  formatPercent as percent,
} from '../../vocabulary/format.js';

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

/** "1 kernel", "2 kernels", "0.9 stretches" of a count that is a mean. */
export function plural(value: number, one: string, many = `${one}s`): string {
  const number = formatCount(value);
  return `${number} ${number === '1' ? one : many}`;
}

/** "once", "3 times", "1.3 times". */
export function times(value: number): string {
  const number = formatCount(value);
  return number === '1' ? 'once' : `${number} times`;
}
