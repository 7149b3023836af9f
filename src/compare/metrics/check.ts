import type {
  Baseline,
  BaselineCheck,
  BaselineComparison,
  BaselineVerdict,
} from '../../model/documents/baseline.js';
import { realDifferences } from '../../facts/difference/ratio-test.js';
import { whyNoSpread } from './comparison-text.js';
import { differencesOf, isClaim, type MetricPair, pairsOf, refuseShared, sizes, knownOf } from './pairs.js';
import type { Sampled } from './sample.js';
import { comparedLabel } from '../../vocabulary/compared-metrics.js';
import { formatPercent, formatShareSetting, formatSigned, plural } from '../../vocabulary/format.js';

interface CheckOptions {
  /** Maximum share by which a metric may become worse, e.g. 0.05. */
  tolerance: number;
  /** Treat repeats inside one process as independent. */
  withinProcess: boolean;
}

type Decision = ReturnType<typeof realDifferences>[number];

/**
 * Compares later sessions with a stored baseline. A change is real if Welch's test is significant after Holm's
 * correction, and the permutation test, if it has enough values, agrees. Noise measured within one process does not
 * describe the next process; such metrics, and those without any spread, are reported without a verdict.
 * @throws E_USAGE if the two share a session, or have no common metric
 */
export function checkBaseline(
  baseline: Baseline,
  current: Sampled,
  { tolerance, withinProcess }: CheckOptions,
): BaselineCheck {
  refuseShared([baseline.sessions, current.sessions], (id) => ({
    what: `session ${id} is part of the baseline ${baseline.name}`,
    fix: 'Run the program again and check that session: inferscope baseline check @last',
  }));
  const pairs = pairsOf(baseline.metrics, current.metrics, (common, [baselineList, currentList]) => ({
    what: `the baseline ${baseline.name} and these sessions have no ${common} in common`,
    why: `The baseline has ${baselineList}. The sessions have ${currentList}.`,
    fix: 'Check sessions of the same kind and sizes as the baseline, or set another one: inferscope baseline set SESSION --name NAME',
  }));
  const claims = pairs.filter((pair) => isClaim(pair, withinProcess));
  const decided = realDifferences(claims.map(({ welch, permutation }) => ({ p: welch!.p, permutation })));
  const comparisons = pairs.map((pair) =>
    comparisonOf(pair, decided[claims.indexOf(pair)] ?? null, tolerance),
  );
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

function comparisonOf(pair: MetricPair, decision: Decision | null, tolerance: number): BaselineComparison {
  const { base, now, welch: test } = pair;
  const { known, plain, basis } = knownOf(pair);
  const change = test ? test.ratio - 1 : plain;
  const comparison = {
    ...known,
    baseline: base?.value ?? null,
    current: now?.value ?? null,
    change,
    change_ci95: test ? ([test.ci95[0] - 1, test.ci95[1] - 1] as [number, number]) : null,
    p: test?.p ?? null,
    p_adjusted: decision?.p_adjusted ?? null,
    p_permutation: pair.permutation,
    degrees_of_freedom: test?.degrees_of_freedom ?? null,
    basis,
    n: sizes(pair),
    verdict: verdictOf(pair, { change, decision, tolerance, better: known.better }),
  };
  return { ...comparison, text: wordsOf(comparison, tolerance) };
}

function verdictOf(
  { base, now, welch: test }: MetricPair,
  facts: {
    change: number | null;
    decision: Decision | null;
    tolerance: number;
    better: 'lower' | 'higher';
  },
): BaselineVerdict {
  if (!base || !now) return 'missing';
  if (!test || facts.change === null) return 'no_spread';
  if (facts.decision === null) return 'within_process';
  const worse = facts.better === 'lower' ? facts.change : -facts.change;
  if (facts.decision.real) {
    if (worse > facts.tolerance) return 'regression';
    return worse > 0 ? 'within_tolerance' : 'improvement';
  }
  const [low, high] = test.ci95.map((ratio) => ratio - 1) as [number, number];
  if (Math.max(Math.abs(low), Math.abs(high)) <= facts.tolerance) return 'unchanged';
  return (facts.better === 'lower' ? high : -low) <= facts.tolerance ? 'no_worse' : 'inconclusive';
}

function wordsOf(comparison: Omit<BaselineComparison, 'text'>, tolerance: number): string {
  const { change, change_ci95: interval, verdict, better } = comparison;
  if (verdict === 'missing') {
    return comparison.baseline === null ? 'the baseline does not have it' : 'the new sessions do not have it';
  }
  const signedChange = change === null ? 'no ratio to a baseline of 0' : `${formatSigned(change, 'ratio')}`;
  if (verdict === 'no_spread') {
    return `${signedChange}, ${whyNoSpread(comparison.n)}`;
  }
  const range = `${formatSigned(interval![0], 'ratio')} to ${formatSigned(interval![1], 'ratio')}`;
  if (verdict === 'within_process') {
    return `${signedChange} (${range} by the scatter inside one process); other launches of the same program may differ by more, so nothing is claimed`;
  }
  const worst = better === 'lower' ? interval![1] : -interval![0];
  switch (verdict) {
    case 'regression':
      return `worse: ${signedChange} (${range}), more than the ${formatShareSetting(tolerance)} tolerated`;
    case 'within_tolerance':
      return `worse: ${signedChange} (${range}), within the ${formatShareSetting(tolerance)} tolerated`;
    case 'improvement':
      return `better: ${signedChange} (${range})`;
    case 'unchanged':
      return `not significant; a change beyond ${formatPercent(Math.max(Math.abs(interval![0]), Math.abs(interval![1])))} is ruled out`;
    case 'no_worse':
      return `not significant; more than ${formatPercent(Math.max(worst, 0))} worse is ruled out`;
    default:
      return `no difference shown, but ${formatSigned(better === 'lower' ? worst : -worst, 'ratio')} is not ruled out`;
  }
}

const decisive = new Set<BaselineVerdict>(['improvement', 'within_tolerance', 'unchanged', 'no_worse']);

function resultOf(comparisons: readonly BaselineComparison[]): BaselineCheck['result'] {
  if (comparisons.some(({ verdict }) => verdict === 'regression')) return 'regression';
  const hasDecision = comparisons.some(({ verdict }) => decisive.has(verdict));
  const hasOpen = comparisons.some(({ verdict }) => !decisive.has(verdict) && verdict !== 'missing');
  return hasDecision && !hasOpen ? 'passed' : 'undecided';
}

function headlineOf(
  result: BaselineCheck['result'],
  comparisons: readonly BaselineComparison[],
  tolerance: number,
): string {
  const withVerdict = (...verdicts: BaselineVerdict[]) =>
    comparisons.filter(({ verdict }) => verdicts.includes(verdict));
  const names = (list: readonly BaselineComparison[]) => list.map(comparedLabel).join(', ');
  const some = (list: readonly BaselineComparison[]) =>
    list.length > 3 ? plural(list.length, 'metric') : names(list);
  const better = withVerdict('improvement');
  const improvements = better.length > 0 ? ` Better: ${names(better)}.` : '';
  if (result === 'regression') return `Regression: ${names(withVerdict('regression'))}.${improvements}`;
  if (result === 'passed')
    return `No metric became worse by more than ${formatShareSetting(tolerance)}.${improvements}`;
  const withoutSpread = withVerdict('no_spread', 'within_process');
  const inconclusive = withVerdict('inconclusive');
  const why = [
    withoutSpread.length > 0 ? `no spread between launches is known for ${some(withoutSpread)}` : '',
    inconclusive.length > 0 ? `the launches scatter too much for ${some(inconclusive)}` : '',
  ].filter(Boolean);
  return `Inconclusive: ${why.join('; ')}.${improvements}`;
}
