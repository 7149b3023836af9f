import type { ServingPoint, ServingResult } from '../../../model/documents/serving.js';
import { formatNumber, nbsp } from '../../format.js';

const kinds = ['closed', 'constant', 'poisson', 'ramp', 'trace'] as const;

/** "4 users", "2 req/s", "trace 3.1 req/s". */
export function levelLabel({ load }: ServingPoint): string {
  if (load.rate_per_s === null) {
    if (load.kind !== 'closed') return load.kind;
    return `${load.concurrency ?? 0}${nbsp}user${load.concurrency === 1 ? '' : 's'}`;
  }
  const named = load.kind === 'ramp' || load.kind === 'trace' ? `${load.kind}${nbsp}` : '';
  return `${named}${formatNumber(load.rate_per_s)}${nbsp}req/s`;
}

/** By kind and load: a sweep does not run in this order. */
export function byLoad({ points }: ServingResult): ServingPoint[] {
  return points.toSorted(
    (a, b) =>
      kinds.indexOf(a.load.kind) - kinds.indexOf(b.load.kind) ||
      (a.load.rate_per_s ?? a.load.concurrency ?? 0) - (b.load.rate_per_s ?? b.load.concurrency ?? 0),
  );
}

/** What the loads' axis is. */
export function levelName(points: readonly ServingPoint[]): string {
  const closed = points.some(({ load }) => load.kind === 'closed');
  const open = points.some(({ load }) => load.kind !== 'closed');
  if (closed && open) return 'load';
  return closed ? 'users, each waiting for its answer' : 'requests offered';
}
