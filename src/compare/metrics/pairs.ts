import type { Baseline, BaselineCheck, SampledMetric } from '../../model/documents/baseline.js';
import { type ErrorParts, InferscopeError } from '../../model/errors.js';
import { pointLabel, sortedPoints } from '../../vocabulary/bench.js';
import { comparedMetricLabel } from '../../vocabulary/compared-metrics.js';
import {
  type LogMean,
  logMeanOf,
  logMeanOfInterval,
  permutationP,
  type RatioTest,
  ratioTest,
} from '../../facts/difference/ratio-test.js';

/** A metric of two sides with the test of its difference. */
export interface MetricPair {
  id: string;
  base: SampledMetric | null;
  now: SampledMetric | null;
  /** Null if a side has no spread. */
  welch: RatioTest | null;
  permutation: number | null;
  /** Whether both sides have several values. */
  values: boolean;
}

/**
 * Every metric of either side, by load or batch.
 * @throws E_USAGE without a common metric
 */
export function pairsOf(
  base: readonly SampledMetric[],
  now: readonly SampledMetric[],
  nothingInCommon: (common: 'metric' | 'load or batch', some: [string, string]) => ErrorParts,
): MetricPair[] {
  const metricById = (side: readonly SampledMetric[], id: string) =>
    side.find((metric) => metric.id === id) ?? null;
  if (!base.some(({ id }) => metricById(now, id))) {
    const labelled = now.filter(({ name }) =>
      base.some((other) => comparedMetricLabel(other.name) === comparedMetricLabel(name)),
    );
    // A label at the same load is of two metrics: end to end of a batch, and of a request to a server.
    const isOtherMetric = labelled.some(({ point }) => base.some((other) => other.point === point));
    const isSameMetric = labelled.length > 0 && !isOtherMetric;
    const listOf = isSameMetric ? pointList : isOtherMetric ? nameList : metricList;
    const lists = [base, now].map(listOf) as [string, string];
    throw new InferscopeError('E_USAGE', nothingInCommon(isSameMetric ? 'load or batch' : 'metric', lists));
  }
  const metrics = [...base, ...now];
  const points = sortedPoints(metrics.map(({ point }) => point));
  const ids = new Set(
    metrics.toSorted((a, b) => points.indexOf(a.point) - points.indexOf(b.point)).map(({ id }) => id),
  );
  return [...ids].map((id) => pairOf(id, metricById(base, id), metricById(now, id)));
}

const firstOf = (words: ReadonlySet<string>): string =>
  `${[...words].slice(0, 4).join('; ')}${words.size > 4 ? `; and ${words.size - 4} more` : ''}`;

/** "TTFT; TPOT; end to end", the first metrics. */
const metricList = (side: readonly SampledMetric[]): string =>
  firstOf(new Set(side.map(({ name }) => comparedMetricLabel(name))));

/** "ttft; ttft.median; tpot", the first names, which differ where labels do not. */
const nameList = (side: readonly SampledMetric[]): string => firstOf(new Set(side.map(({ name }) => name)));

/** "4 users; 8 users", the first points. */
const pointList = (side: readonly SampledMetric[]): string =>
  firstOf(
    new Set(
      sortedPoints(side.map(({ point }) => point)).map((point) =>
        point === null ? 'figures without a load or batch' : pointLabel(point),
      ),
    ),
  );

function pairOf(id: string, base: SampledMetric | null, now: SampledMetric | null): MetricPair {
  const [from, to] = [base && spreadOf(base), now && spreadOf(now)];
  const values = base !== null && now !== null && base.values.length > 1 && now.values.length > 1;
  return {
    id,
    base,
    now,
    welch: from && to ? ratioTest(from, to) : null,
    permutation: values ? permutationP(base.values, now.values) : null,
    values,
  };
}

/** Null if its noise is unknown. */
function spreadOf({ values, value, interval }: SampledMetric): LogMean | null {
  return interval ? logMeanOfInterval(value, interval.n, interval.ci95) : logMeanOf(values);
}

/** Whether a difference can be significant at all: both sides have several launches, or repeats count as launches. */
export function isClaim({ base, now, welch }: MetricPair, withinProcess: boolean): boolean {
  const between = [base, now].every(
    (side) => side !== null && (side.basis === 'launches' || side.interval?.over_launches === true),
  );
  return welch !== null && (withinProcess || between);
}

/** Number of values on each side. */
export const sizes = ({ base, now }: MetricPair): [number, number] => {
  const count = (side: SampledMetric | null) =>
    side === null ? 0 : (side.interval?.n ?? Math.max(side.values.length, 1));
  return [count(base), count(now)];
};

const order = ['none', 'interval', 'repeats', 'launches'] as const;

/** Results of all kinds of comparison for a pair. */
export function knownOf({ id, base, now }: MetricPair) {
  const { point, name, unit, better } = (base ?? now)!;
  const weaker = base && now && order[Math.min(order.indexOf(base.basis), order.indexOf(now.basis))];
  return {
    known: { id, point, name, unit, better },
    plain: base && now && base.value !== 0 ? now.value / base.value - 1 : null,
    basis: weaker ?? ('none' as const),
  };
}

/** @throws E_USAGE if a session is on both sides */
export function refuseShared(
  [base, now]: readonly [Baseline['sessions'], Baseline['sessions']],
  words: (id: string) => { what: string; fix: string },
): void {
  const shared = base.find(({ id }) => now.some((session) => session.id === id));
  const why = 'A session does not differ from itself.';
  if (shared) throw new InferscopeError('E_USAGE', { ...words(shared.id), why });
}

/** Facts of machine, software and workload that differ between the sides. */
export function differencesOf(
  baseline: Baseline['identity'],
  current: Baseline['identity'],
): BaselineCheck['differences'] {
  const labels = [...new Set([...baseline, ...current].map(({ label }) => label))];
  return labels.flatMap((label) => {
    const [from, to] = [baseline, current].map((facts) => facts.find((fact) => fact.label === label));
    if (from?.value === to?.value) return [];
    return [{ label, part: (from ?? to)!.part, baseline: from?.value ?? null, current: to?.value ?? null }];
  });
}
