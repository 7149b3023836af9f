import type { BenchPointResult } from '../../model/documents/bench.js';
import { mean } from '../../model/statistics.js';

export type Size = 'batch_size' | 'input_len' | 'output_len';
export type TimedRepeat = NonNullable<BenchPointResult['repeats']>[number];

/** Points that differ only in one size, ascending; the largest such set, null if none has two points. */
export function sweepOver(points: readonly BenchPointResult[], size: Size): BenchPointResult[] | null {
  const fixed = (['batch_size', 'input_len', 'output_len'] as const).filter(
    (dimension) => dimension !== size,
  );
  const groups = new Map<string, BenchPointResult[]>();
  for (const point of points) {
    if (point.outcome !== 'measured') continue;
    const key = fixed.map((dimension) => point[dimension]).join(' ');
    groups.set(key, [...(groups.get(key) ?? []), point]);
  }
  const [largest] = [...groups.values()].toSorted((x, y) => y.length - x.length);
  return largest && largest.length > 1 ? largest.toSorted((x, y) => x[size] - y[size]) : null;
}

/** The point that represents a single request: that of `bench latency`, else the smallest batch. */
export function referencePoint(points: readonly BenchPointResult[]): BenchPointResult | null {
  const measured = points.filter(({ outcome }) => outcome === 'measured');
  return (
    measured.find(({ parts }) => parts.includes('latency')) ??
    measured.toSorted((x, y) => x.batch_size - y.batch_size)[0] ??
    null
  );
}

/** Independent values of a metric: the mean of each process launch; of a single launch its repeats. */
export function independentValues(
  point: BenchPointResult,
  valueOf: (repeat: TimedRepeat) => number | null,
): number[] {
  const known = (point.repeats ?? []).flatMap((repeat) => {
    const value = valueOf(repeat);
    return value === null ? [] : [{ launch: repeat.launch, value }];
  });
  const launches = [...new Set(known.map(({ launch }) => launch))];
  if (launches.length < 2) return known.map(({ value }) => value);
  return launches.map((launch) =>
    mean(known.filter((repeat) => repeat.launch === launch).map(({ value }) => value)),
  );
}

/** Growth from `low` to `high` as growth for each doubling of the size: 4 times over two doublings is 2. */
export function perDoubling(ratio: number, low: number, high: number): number {
  return ratio ** (1 / Math.log2(high / low));
}
