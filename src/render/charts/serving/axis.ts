import type { ServingPoint } from '../../../model/documents/serving.js';

/** What the axis of loads is. */
export function loadAxis(points: readonly ServingPoint[]): string {
  const closed = points.some(({ load }) => load.kind === 'closed');
  const open = points.some(({ load }) => load.kind !== 'closed');
  if (closed && open) return 'load';
  return closed ? 'users, each waiting for its answer' : 'requests offered';
}
