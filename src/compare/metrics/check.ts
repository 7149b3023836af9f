import type {
  Baseline,
  BaselineCheck,
  BaselineComparison,
  BaselineVerdict,
  SampledMetric,
} from '../../model/documents/baseline.js';
import { InferscopeError } from '../../model/errors.js';
import type { Sampled } from './sample.js';
import {
  holm,
  type LogMean,
  logMeanOf,
  logMeanOfInterval,
  permutationP,
  type RatioTest,
  ratioTest,
} from '../../facts/difference/ratio-test.js';

export interface CheckOptions {
  /** Share by which a metric may become worse, e.g. 0.05. */
  tolerance: number;
  /** Take repeats inside one process as independent. */
  withinProcess: boolean;
}

const level = 0.05;

interface Tested {
  base: SampledMetric | null;
  now: SampledMetric | null;
  /** Null where a side has no spread. */
  test: RatioTest | null;
  permutation: number | null;
}

/**
 * Later sessions against a stored baseline. A change is real when Welch's test says so after Holm's correction, and the
 * permutation test, where it has enough values, does not disagree. A scatter that is known within one process only says
 * nothing of the next process, and no spread at all says nothing: both are told and claim nothing.
 * @throws E_USAGE when the two have no metric in common
 */
export function checkBaseline(
  baseline: Baseline,
  current: Sampled,
  { tolerance, withinProcess }: CheckOptions,
): BaselineCheck {
  const ids = [...new Set([...baseline.metrics, ...current.metrics].map(({ id }) => id))];
  if (!baseline.metrics.some(({ id }) => current.metrics.some((metric) => metric.id === id))) {
    throw nothingInCommon(baseline, current);
  }
  const tested = ids.map((id): Tested => {
    const base = baseline.metrics.find((metric) => metric.id === id) ?? null;
    const now = current.metrics.find((metric) => metric.id === id) ?? null;
    const [from, to] = [base && spreadOf(base), now && spreadOf(now)];
    const values = base && now && base.values.length > 1 && now.values.length > 1;
    return {
      base,
      now,
      test: from && to ? ratioTest(from, to) : null,
      permutation: values ? permutationP(base.values, now.values) : null,
    };
  });
  const claims = tested.filter((one) => one.test !== null && (withinProcess || isBetween(one)));
  const adjusted = holm(claims.map(({ test }) => test!.p));
  const comparisons = tested.map((one) => {
    const claim = claims.indexOf(one);
    return comparisonOf(one, claim < 0 ? null : adjusted[claim]!, tolerance);
  });
  const result = resultOf(comparisons);
  return {
    baseline: { name: baseline.name, set_at: baseline.set_at, sessions: baseline.sessions },
    sessions: current.sessions,
    tolerance,
    within_process: withinProcess,
    result,
    headline: headlineOf(result, comparisons, tolerance),
    comparisons,
    differences: differencesOf(baseline.identity, current.identity),
  };
}

function nothingInCommon(baseline: Baseline, current: Sampled): InferscopeError {
  const some = (metrics: readonly SampledMetric[]) =>
    metrics
      .slice(0, 4)
      .map(({ id }) => id)
      .join(', ');
  return new InferscopeError('E_USAGE', {
    what: `the baseline ${baseline.name} and these sessions have no metric in common`,
    why: `It has ${some(baseline.metrics)}; they have ${some(current.metrics)}.`,
    fix: 'Check sessions of the same kind and sizes as the baseline, or set another one: inferscope baseline set SESSION --name NAME',
  });
}

/** Null where nothing is known of its scatter. */
export function spreadOf({ values, value, interval }: SampledMetric): LogMean | null {
  return interval ? logMeanOfInterval(value, interval.n, interval.ci95) : logMeanOf(values);
}

/** Both sides know how launches differ. */
export function isBetween({ base, now }: Pick<Tested, 'base' | 'now'>): boolean {
  return [base, now].every(
    (side) => side !== null && (side.basis === 'launches' || side.interval?.over_launches === true),
  );
}

const order = ['none', 'interval', 'repeats', 'launches'] as const;

/** The weaker of two. */
export function weakerBasis(base: SampledMetric, now: SampledMetric): SampledMetric['basis'] {
  return order[Math.min(order.indexOf(base.basis), order.indexOf(now.basis))]!;
}

function comparisonOf(one: Tested, p_adjusted: number | null, tolerance: number): BaselineComparison {
  const { base, now, test, permutation } = one;
  const known = (base ?? now)!;
  const plain = base && now && base.value !== 0 ? now.value / base.value - 1 : null;
  const change = test ? test.ratio - 1 : plain;
  const verdict = verdictOf(one, { change, p_adjusted, tolerance, better: known.better });
  const count = (side: SampledMetric | null) =>
    side === null ? 0 : (side.interval?.n ?? Math.max(side.values.length, 1));
  const basis = base && now ? weakerBasis(base, now) : 'none';
  const comparison = {
    id: known.id,
    point: known.point,
    name: known.name,
    unit: known.unit,
    better: known.better,
    baseline: base?.value ?? null,
    current: now?.value ?? null,
    change,
    change_ci95: test ? ([test.ci95[0] - 1, test.ci95[1] - 1] as [number, number]) : null,
    p: test?.p ?? null,
    p_adjusted,
    p_permutation: permutation,
    degrees_of_freedom: test?.degrees_of_freedom ?? null,
    basis,
    n: [count(base), count(now)] as [number, number],
    verdict,
  };
  return { ...comparison, text: wordsOf(comparison, tolerance) };
}

function verdictOf(
  { base, now, test, permutation }: Tested,
  of: { change: number | null; p_adjusted: number | null; tolerance: number; better: 'lower' | 'higher' },
): BaselineVerdict {
  if (!base || !now) return 'missing';
  if (!test || of.change === null) return 'no_spread';
  if (of.p_adjusted === null) return 'within_process';
  const worse = of.better === 'lower' ? of.change : -of.change;
  const real = of.p_adjusted < level && (permutation === null || permutation < level);
  if (real) {
    if (worse > of.tolerance) return 'regression';
    return worse > 0 ? 'within_tolerance' : 'improvement';
  }
  const [low, high] = test.ci95.map((ratio) => ratio - 1) as [number, number];
  if (Math.max(Math.abs(low), Math.abs(high)) <= of.tolerance) return 'unchanged';
  return (of.better === 'lower' ? high : -low) <= of.tolerance ? 'no_worse' : 'inconclusive';
}

const percent = (share: number): string => {
  const value = Math.abs(share) * 100;
  return `${value.toFixed(value < 9.95 ? 1 : 0)} %`;
};
const signed = (share: number): string => `${share < 0 ? '−' : '+'}${percent(share)}`;

function wordsOf(one: Omit<BaselineComparison, 'text'>, tolerance: number): string {
  const { change, change_ci95: interval, verdict, better } = one;
  if (verdict === 'missing') {
    return one.baseline === null ? 'the baseline does not have it' : 'the new sessions do not have it';
  }
  const moved = change === null ? 'no ratio to a baseline of 0' : `${signed(change)}`;
  if (verdict === 'no_spread') {
    return `${moved}, with one value on a side: how far launches differ is not known, so nothing is claimed`;
  }
  const range = `${signed(interval![0])} to ${signed(interval![1])}`;
  if (verdict === 'within_process') {
    return `${moved} (${range} by the scatter inside one process); other launches of the same program may differ by more, so nothing is claimed`;
  }
  const worst = better === 'lower' ? interval![1] : -interval![0];
  switch (verdict) {
    case 'regression':
      return `worse by ${percent(change!)} (${range}), more than the ${percent(tolerance)} tolerated`;
    case 'within_tolerance':
      return `worse by ${percent(change!)} (${range}), within the ${percent(tolerance)} tolerated`;
    case 'improvement':
      return `better by ${percent(change!)} (${range})`;
    case 'unchanged':
      return `no real difference; a change beyond ${percent(Math.max(Math.abs(interval![0]), Math.abs(interval![1])))} is ruled out`;
    case 'no_worse':
      return `no real difference; more than ${percent(Math.max(worst, 0))} worse is ruled out`;
    default:
      return `no difference shown, but up to ${percent(worst)} worse is not ruled out: more launches would tell`;
  }
}

const decisive = new Set<BaselineVerdict>(['improvement', 'within_tolerance', 'unchanged', 'no_worse']);

function resultOf(comparisons: readonly BaselineComparison[]): BaselineCheck['result'] {
  if (comparisons.some(({ verdict }) => verdict === 'regression')) return 'regression';
  const decided = comparisons.some(({ verdict }) => decisive.has(verdict));
  const open = comparisons.some(({ verdict }) => !decisive.has(verdict) && verdict !== 'missing');
  return decided && !open ? 'passed' : 'undecided';
}

function headlineOf(
  result: BaselineCheck['result'],
  comparisons: readonly BaselineComparison[],
  tolerance: number,
): string {
  const of = (...verdicts: BaselineVerdict[]) =>
    comparisons.filter(({ verdict }) => verdicts.includes(verdict));
  const names = (list: readonly BaselineComparison[]) => list.map(({ id }) => id).join(', ');
  const better = of('improvement');
  const gained = better.length > 0 ? ` Better: ${names(better)}.` : '';
  if (result === 'regression') return `Regression: ${names(of('regression'))}.${gained}`;
  if (result === 'passed') return `No metric became worse by more than ${percent(tolerance)}.${gained}`;
  const silent = of('no_spread', 'within_process');
  const open = of('inconclusive');
  const why = [
    silent.length > 0 ? `no spread between launches is known for ${names(silent)}` : '',
    open.length > 0 ? `the launches scatter too much for ${names(open)}` : '',
  ].filter(Boolean);
  return `Undecided: ${why.join('; ')}.${gained}`;
}

/** Facts of machine, software and workload that are not the same on both sides. */
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
