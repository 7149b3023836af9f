import type { SampledMetric } from '../../model/documents/baseline.js';
import type {
  BenchCompare,
  ComparedMetric,
  ComparedSide,
  CompareGate,
  CompareVerdict,
} from '../../model/documents/bench-compare.js';
import { InferscopeError } from '../../model/errors.js';
import { comparisonText } from './comparison-text.js';
import { differencesOf, isClaim, type MetricPair, pairsOf, sizes, knownOf } from './pairs.js';
import { minP, minValuesPerSide, type RankTest, rankTest } from '../../facts/difference/rank-test.js';
import type { Sampled } from './sample.js';
import { significanceLevel, realDifferences } from '../../facts/difference/ratio-test.js';
import { comparedLabel } from '../../vocabulary/compared-metrics.js';
import { formatNumber, formatShareSetting, formatSigned } from '../../vocabulary/format.js';

/** A metric with the maximum share by which it may become worse. */
export interface Gate {
  metric: string;
  share: number;
}

export interface SideData extends Pick<Sampled, 'identity' | 'metrics'> {
  side: ComparedSide;
  /** What its launches do not cover, e.g. server starts. */
  caveats?: readonly string[];
}

interface Pair extends MetricPair {
  family: ComparedMetric['family'];
  ranks: RankTest | null;
}

/** The test that decides a pair. */
interface Decision {
  method: 'mann_whitney' | 'welch';
  ratio: number;
  ci95: [number, number] | null;
  p: number;
  p_adjusted: number;
  real: boolean;
}

/** `tpot_ms` is typed as `tpot`. */
const shortName = (name: string): string => name.replace(/_(?:ms|per_s|bytes)$/, '');

/**
 * Compares two sides metric by metric. Values are process launches (or, with `withinProcess`, repeats of one). The rank
 * test decides if there are enough values to reach 5 % in the family, otherwise Welch's t-test on logarithms; both
 * after Holm's correction. Gated metrics are a separate family, so that other metrics do not weaken their test.
 * @throws E_USAGE if the sides have no common metric, or a gate names none of them
 */
export function compareSides(
  base: SideData,
  now: SideData,
  { gates, withinProcess }: { gates: readonly Gate[]; withinProcess: boolean },
): BenchCompare {
  const isGated = (name: string) => gates.some(({ metric }) => metric === name || metric === shortName(name));
  const metricPairs = pairsOf(base.metrics, now.metrics, (common, [baseList, nowList]) => ({
    what: `${base.side.selector} and ${now.side.selector} have no ${common} in common`,
    why: `The first has ${baseList}. The second has ${nowList}.`,
    fix: `Compare benchmarks with a ${common} in common. One variant of several is chosen as in @last:mode=eager.`,
  }));
  const common = metricPairs.flatMap((pair) => (pair.base && pair.now ? [pair.base] : []));
  for (const { metric } of gates) checkGate(metric, common);
  const pairs = metricPairs.map((pair): Pair => ({
    ...pair,
    family: isGated((pair.base ?? pair.now)!.name) ? 'gate' : 'other',
    ranks: pair.values ? rankTest(pair.base!.values, pair.now!.values) : null,
  }));
  const claims = pairs.filter((pair) => isClaim(pair, withinProcess));
  const decisions = new Map<Pair, Decision>();
  for (const family of ['gate', 'other'] as const) {
    const familyPairs = claims.filter((pair) => pair.family === family);
    for (const [pair, decision] of decide(familyPairs)) decisions.set(pair, decision);
  }
  const comparisons = pairs.map((pair) => comparisonOf(pair, decisions.get(pair) ?? null));
  const gateResults = gates.map((gate) => judge(gate, comparisons));
  const result = resultOf(gateResults);
  return {
    base: base.side,
    now: now.side,
    within_process: withinProcess,
    result,
    headline: headlineOf(result, gateResults, comparisons),
    power: [...powerOf(claims, decisions), ...caveatsOf(base, now)],
    gates: gateResults,
    comparisons,
    differences: differencesOf(base.identity, now.identity),
  };
}

/** Whether the most extreme order of the values would be significant. */
function ranksReach(pair: Pair, metrics: number): boolean {
  return pair.ranks !== null && minP(...sizes(pair)) * metrics < significanceLevel;
}

function* decide(family: readonly Pair[]): Generator<[Pair, Decision]> {
  const tested = family.map((pair) => {
    const byRanks = ranksReach(pair, family.length);
    const { ratio, ci95, p } = byRanks ? pair.ranks! : pair.welch!;
    return { method: byRanks ? ('mann_whitney' as const) : ('welch' as const), ratio, ci95, p };
  });
  // The rank test needs no permutation test.
  const decided = realDifferences(
    tested.map(({ method, p }, i) => ({
      p,
      permutation: method === 'welch' ? family[i]!.permutation : null,
    })),
  );
  for (const [i, pair] of family.entries()) yield [pair, { ...tested[i]!, ...decided[i]! }];
}

function comparisonOf(pair: Pair, decision: Decision | null): ComparedMetric {
  const { base, now, welch, ranks } = pair;
  const { known, plain, basis } = knownOf(pair);
  const test = decision ?? welch;
  const values = {
    ...known,
    base: base?.value ?? null,
    now: now?.value ?? null,
    change: test ? test.ratio - 1 : plain,
    change_ci95: test?.ci95 ? ([test.ci95[0] - 1, test.ci95[1] - 1] as [number, number]) : null,
    superiority: ranks?.superiority ?? null,
    method: decision?.method ?? null,
    p: decision?.p ?? null,
    p_adjusted: decision?.p_adjusted ?? null,
    p_mann_whitney: ranks?.p ?? null,
    p_welch: welch?.p ?? null,
    p_permutation: pair.permutation,
    family: pair.family,
    basis,
    n: sizes(pair),
    verdict: verdictOf(pair, decision),
  };
  return { ...values, text: comparisonText(values) };
}

function verdictOf({ base, now, welch }: Pair, decision: Decision | null): CompareVerdict {
  if (!base || !now) return 'missing';
  if (!welch) return 'no_spread';
  if (!decision) return 'within_process';
  if (!decision.real || decision.ratio === 1) return 'no_real_difference';
  return decision.ratio > 1 === (base.better === 'lower') ? 'worse' : 'better';
}

/** Share by which a metric is worse; below 0 it is better. */
const worseBy = ({ better }: ComparedMetric, share: number): number => (better === 'lower' ? share : -share);

function judge({ metric, share }: Gate, comparisons: readonly ComparedMetric[]): CompareGate {
  const gated = comparisons.filter(
    ({ name, verdict }) => verdict !== 'missing' && (metric === name || metric === shortName(name)),
  );
  const failed = gated.filter(
    (comparison) => comparison.verdict === 'worse' && worseBy(comparison, comparison.change!) > share,
  );
  const by = (list: readonly ComparedMetric[]) => list.map(({ id }) => id);
  if (failed.length > 0) return { metric, share, result: 'failed', by: by(failed) };
  const open = gated.filter((comparison) => {
    if (comparison.verdict === 'within_process' || comparison.verdict === 'no_spread') return true;
    if (comparison.verdict !== 'no_real_difference') return false;
    const worst =
      comparison.change_ci95 &&
      Math.max(...comparison.change_ci95.map((bound) => worseBy(comparison, bound)));
    return worst === null || worst > share;
  });
  if (open.length > 0) return { metric, share, result: 'undecided', by: by(open) };
  return { metric, share, result: 'passed', by: by(gated) };
}

function resultOf(gates: readonly CompareGate[]): BenchCompare['result'] {
  if (gates.length === 0) return 'no_gate';
  if (gates.some(({ result }) => result === 'failed')) return 'failed';
  return gates.some(({ result }) => result === 'undecided') ? 'undecided' : 'passed';
}

function headlineOf(
  result: BenchCompare['result'],
  gates: readonly CompareGate[],
  comparisons: readonly ComparedMetric[],
): string {
  const withVerdict = (verdict: CompareVerdict) =>
    comparisons.filter((comparison) => comparison.verdict === verdict);
  const namesOf = (list: readonly ComparedMetric[]) =>
    list
      .map((comparison) => `${comparedLabel(comparison)} (${formatSigned(comparison.change!, 'ratio')})`)
      .join(', ');
  const sentences = [
    ...(withVerdict('worse').length > 0 ? [`Worse: ${namesOf(withVerdict('worse'))}.`] : []),
    ...(withVerdict('better').length > 0 ? [`Better: ${namesOf(withVerdict('better'))}.`] : []),
  ];
  const words = sentences.length > 0 ? sentences.join(' ') : noChangeText(comparisons);
  if (result === 'no_gate') return words;
  const gate = gates.map(
    ({ metric, share, result: gateResult }) =>
      `${metric} worse by more than ${formatShareSetting(share)}: ${gateWords[gateResult]}`,
  );
  return `${result === 'failed' ? 'FAILED' : result === 'passed' ? 'Passed' : 'Inconclusive'} (${gate.join('; ')}). ${words}`;
}

const gateWords = { failed: 'yes', passed: 'no', undecided: 'not shown, not ruled out' } as const;

function noChangeText(comparisons: readonly ComparedMetric[]): string {
  const decided = comparisons.some(({ verdict }) => verdict === 'no_real_difference');
  return decided
    ? 'No change is significant.'
    : 'Nothing is claimed: the spread between launches of a side is unknown.';
}

/**
 * What this number of values can show: which metrics are out of reach of the rank test, and how many values would
 * suffice.
 */
function powerOf(claims: readonly Pair[], decisions: ReadonlyMap<Pair, Decision>): string[] {
  const short = (['gate', 'other'] as const).flatMap((family) => {
    const familyPairs = claims.filter((pair) => pair.family === family);
    const first = familyPairs.find((pair) => pair.ranks !== null && decisions.get(pair)!.method === 'welch');
    if (!first) return [];
    const smallestP = Math.min(1, minP(...sizes(first)) * familyPairs.length);
    const metrics =
      familyPairs.length === 1 ? '1 metric' : `${familyPairs.length} metrics corrected together`;
    return [
      {
        values: sizes(first).join(' against '),
        words: `${metrics}: smallest possible p ${formatNumber(smallestP, 2)}`,
        areLaunches: knownOf(first).basis === 'launches',
        needed: minValuesPerSide(familyPairs.length),
      },
    ];
  });
  const [first] = short;
  if (!first) return [];
  const needed = Math.max(...short.map((decision) => decision.needed));
  const enough = short.every(({ areLaunches }) => areLaunches)
    ? `--launches ${needed}`
    : `${needed} values per side`;
  return [
    `With ${first.values} values a rank test cannot reach p < 0.05 (${[...new Set(short.map(({ words }) => words))].join('; ')}). Welch's t-test on the logarithms decides instead; it assumes that the values vary normally. With ${enough}, ranks decide.`,
  ];
}

/** A note that applies to both sides is listed once. */
function caveatsOf(...sides: SideData[]): string[] {
  const texts = [...new Set(sides.flatMap(({ caveats = [] }) => caveats))];
  return texts.map((text) => {
    const sidesWithText = sides.filter(({ caveats = [] }) => caveats.includes(text));
    return `${sidesWithText.map(({ side }) => side.selector).join(' and ')}: ${text}`;
  });
}

function checkGate(metric: string, common: readonly SampledMetric[]): void {
  if (common.some(({ name }) => metric === name || metric === shortName(name))) return;
  const known = [...new Set(common.map(({ name }) => shortName(name)))];
  throw new InferscopeError('E_USAGE', {
    what: `--fail-on ${metric}: the two sides have no such metric in common`,
    why: `They have ${known.join(', ')}.`,
    fix: `Type for example: --fail-on ${known[0]}=5%`,
  });
}
