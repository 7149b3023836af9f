import type { Claim } from '../model/documents/analyze.js';
import type { Dimension } from './units.js';
import { anyWithin, firstFrom, countSteps, ValueIndex, type KnownValue } from './value-index.js';
import { valuesOf } from './values.js';
import { numbersIn, type WrittenNumber } from './written-numbers.js';

/** Small whole numbers (ordinals, pairs) are not checked. */
const trivial = new Set([0, 1, 2]);
/** With more values in the cited queries, every number equals the ratio of some pair. */
const maxForPairs = 40;
/** Factor by which a value may differ from a rounded number ("about 3 ms"). */
const slack = 1.02;
/** A number is accepted only if a random number of the same size and digits would match less often than this. */
const byChance = { cited: 0.9, elsewhere: 0.15 };
/** Range of values considered around a number: from 1/1.25 to 1.25 times it. */
const nearby = 1.25;
/** With fewer steps of its last digit in this range, chance cannot be estimated, as for two digits of a percentage. */
const fewestSteps = 6;
/** Whole numbers below this match by chance, so only the cited query is required. */
const smallCount = 100;

interface CheckedAnswer {
  /** The answer with " (unverified)" after every unverified number, and " (no such query)" in invalid citations. */
  text: string;
  claims: Claim[];
}

/**
 * Checks the numbers of an answer against those that tools returned. A number is accepted if it is a value of the queries that its sentence
 * cites, in its unit and to the digits shown, or the ratio, difference, sum or relative change of two of them. Without a citation, and for
 * computed numbers, it is accepted only if a match by chance is unlikely, since with hundreds of values some number always matches. A value
 * of unknown unit verifies no number with a unit. Numbers of the question are not claims. Takes linear time in the length of the answer:
 * values are indexed, and sentences and pairs of values are computed once.
 * @param queries ids that can be cited; null for those of the values
 */
export function checkClaims(
  answer: string,
  known: readonly KnownValue[],
  question: string,
  queries: ReadonlySet<string> | null = null,
): CheckedAnswer {
  const index = new ValueIndex(known);
  const inQuestion = new ValueIndex(valuesOf(question, 'question'));
  const citable = queries ?? new Set(index.queries);
  const cited = citations(answer, index);
  const marks: { index: number; mark: string; claim: Claim | null }[] = [];
  for (const number of numbersIn(answer)) {
    if (isOrdinal(answer, number)) continue;
    const claim = claimOf(number, index, inQuestion, cited(number));
    marks.push({ index: number.end, mark: claim.verified ? '' : ' (unverified)', claim });
  }
  for (const { index: bracket, 0: inside } of answer.matchAll(/\[[^[\]\n]*\]/g)) {
    for (const { index: offset, 0: id } of inside.matchAll(/\bq\d+\b/g)) {
      if (citable.has(id)) continue;
      const claim: Claim = { text: id, verified: false, queries: [], derivation: null };
      marks.push({ index: bracket + offset + id.length, mark: ' (no such query)', claim });
    }
  }
  let text = '';
  let from = 0;
  for (const { index, mark } of marks.toSorted((a, b) => a.index - b.index)) {
    text += answer.slice(from, index) + mark;
    from = index;
  }
  return { text: text + answer.slice(from), claims: marks.flatMap(({ claim }) => claim ?? []) };
}

/** Units that values of a dimension are written in. */
const usualScales: Partial<Record<Dimension, readonly number[]>> = {
  time: [1, 1e3, 1e6, 1e9],
  ratio: [1, 0.01],
  bytes: [1, 1e6, 1e9, 2 ** 20, 2 ** 30],
  bytes_rate: [1, 1e9, 1e12],
  flop_rate: [1, 1e9, 1e12],
};
const dimensions: readonly Dimension[] = [
  ...(Object.keys(usualScales) as Dimension[]),
  ...(['flop', 'rate', 'frequency', 'power', 'energy', 'temperature', 'money', 'plain', 'unknown'] as const),
];

/** Whether a bare number is one of the values in a usual unit, and a match by chance is unlikely. */
export function agreesWith(value: number, known: ValueIndex, question: readonly KnownValue[]): boolean {
  const digits = /^[\d.]+/.exec(String(value))?.[0] ?? '';
  const rounding = 0.5 * 10 ** -(digits.split('.')[1]?.length ?? 0);
  if (question.some((knownValue) => Math.abs(knownValue.value - value) <= rounding * slack)) return true;
  const scaled = dimensions.flatMap((dimension) => {
    const lists = known.magnitudes(known.queries, [dimension]).map(({ list }) => list);
    return (usualScales[dimension] ?? [1]).map((scale) => ({ scale, lists }));
  });
  const near = scaled.filter(({ scale, lists }) =>
    lists.some((list) => anyWithin(list, ...span(value, rounding * slack, scale))),
  );
  if (near.length === 0) return false;
  const limit = byChance.elsewhere;
  const steps = scaled.reduce(
    (sum, { scale, lists }) => sum + countStepsNearby(lists, value, rounding, scale, limit),
    0,
  );
  return steps / stepsNearby(value, rounding) <= limit;
}

/** Whether it is "1." or "2)" at the start of a line. */
function isOrdinal(answer: string, { start, end, unit }: WrittenNumber): boolean {
  if (unit !== null || !/^[.)]\s/.test(answer.slice(end, end + 2))) return false;
  // List marks are short; further from the start of the line is text.
  const before = answer.slice(Math.max(0, start - 40), start);
  const line = before.lastIndexOf('\n');
  return (line >= 0 || start <= 40) && /^\s*(?:[-*#]+\s*)?$/.test(before.slice(line + 1));
}

/** Queries that a sentence cites, and the results that can be computed from their values. */
interface Citation {
  queries: string[];
  others: string[];
  computed: Map<Dimension, ComputedValues>;
}

/** [q1], [q2, q3] in the sentence of a number, or right after its full stop. */
function citations(answer: string, index: ValueIndex): (number: WrittenNumber) => Citation {
  const ends = [...answer.matchAll(/[.!?](?=\s|$)|\n/g)].map(({ index: offset }) => offset);
  const bySentence = new Map<string, Citation>();
  const byQueries = new Map<string, Citation>();
  return ({ start, end }) => {
    const from = (ends[firstFrom(ends, start) - 1] ?? -1) + 1;
    const to = ends[firstFrom(ends, end)] ?? answer.length;
    const sentence = `${from}-${to}`;
    const known = bySentence.get(sentence);
    if (known) return known;
    const behind = /^\s{0,8}(?:\[q[^\]\n]{0,200}\]\s?)+/.exec(answer.slice(to + 1, to + 1000))?.[0] ?? '';
    const text = `${answer.slice(from, to)}${behind}`;
    const queries = [...new Set([...text.matchAll(/\bq\d+\b/g)].map(([id]) => id))].sort();
    const key = queries.join(' ');
    const citation = byQueries.get(key) ?? citationOf(queries, index);
    byQueries.set(key, citation);
    bySentence.set(sentence, citation);
    return citation;
  };
}

const citationOf = (queries: string[], index: ValueIndex): Citation => ({
  queries,
  others: index.queries.filter((query) => !queries.includes(query)),
  computed: computePairs(distinct(index.valuesOf(queries))),
});

function claimOf(number: WrittenNumber, known: ValueIndex, inQuestion: ValueIndex, cited: Citation): Claim {
  const { text, value, unit } = number;
  const claim = (derivation: Claim['derivation'], queries: string[]): Claim => ({
    text,
    verified: derivation !== null,
    queries: [...new Set(queries)],
    derivation,
  });
  const citedQuery = returnedBy(number, known, cited.queries, byChance.cited);
  if (citedQuery !== null) return claim('returned', [citedQuery]);
  if (
    findMatchingQuery(number, inQuestion, inQuestion.queries) !== null ||
    (unit === null && trivial.has(value))
  )
    return claim('question', []);
  const otherQuery = returnedBy(number, known, cited.others, byChance.elsewhere);
  if (otherQuery !== null) return claim('returned', [otherQuery]);
  const computed = findComputed(number, cited.computed);
  return computed ? claim(computed.derivation, computed.queries) : claim(null, []);
}

/** Dimensions of values that may verify a number; without a unit these are counts and shares. */
const dimensionsOf = ({ unit }: WrittenNumber): readonly Dimension[] =>
  unit === null ? ['plain', 'unknown', 'ratio'] : [unit.dimension];

/** Lower and upper bound, in base units. */
const span = (value: number, tolerance: number, scale: number): [number, number] => [
  (Math.abs(value) - tolerance) * scale,
  (Math.abs(value) + tolerance) * scale,
];

/** The first query with a value that rounds to the number. */
function findMatchingQuery(
  number: WrittenNumber,
  known: ValueIndex,
  queries: readonly string[],
): string | null {
  const within = span(number.value, number.rounding * slack, number.unit?.scale ?? 1);
  const found = known
    .magnitudes(queries, dimensionsOf(number))
    .find(({ list }) => anyWithin(list, ...within));
  return found?.query ?? null;
}

/** The query that returned the value, unless there are so many values that one had to match. */
function returnedBy(
  number: WrittenNumber,
  known: ValueIndex,
  queries: readonly string[],
  maxChance: number,
): string | null {
  const found = findMatchingQuery(number, known, queries);
  if (found === null) return null;
  const tooCoarse = stepsNearby(Math.abs(number.value), number.rounding) < fewestSteps;
  if (maxChance === byChance.cited && (isSmallCount(number) || tooCoarse)) return found;
  const lists = known.magnitudes(queries, dimensionsOf(number)).map(({ list }) => list);
  return agreesByChance(number, lists, maxChance) ? null : found;
}

const isSmallCount = ({ value, unit }: WrittenNumber): boolean =>
  unit === null && Number.isInteger(value) && Math.abs(value) < smallCount;

interface Computed {
  derivation: 'ratio' | 'difference' | 'sum';
  queries: string[];
  magnitude: number;
}

interface ComputedValues {
  all: Computed[];
  /** Their magnitudes, ascending. */
  magnitudes: number[];
}

/** Ratios, differences, sums and relative changes of pairs of values of one dimension, by dimension and magnitude. */
function computePairs(values: readonly KnownValue[]): Map<Dimension, ComputedValues> {
  const all = new Map<Dimension, Computed[]>();
  if (values.length > maxForPairs) return new Map();
  for (const a of values) {
    for (const b of values) {
      if (a === b || a.dimension !== b.dimension) continue;
      const queries = [a.query, b.query];
      const add = (derivation: Computed['derivation'], dimension: Dimension, value: number) => {
        const sameDimension = all.get(dimension) ?? [];
        sameDimension.push({ derivation, queries, magnitude: Math.abs(value) });
        all.set(dimension, sameDimension);
      };
      if (b.value !== 0) {
        add('ratio', 'ratio', a.value / b.value);
        add('ratio', 'ratio', 1 - a.value / b.value);
      }
      add('difference', a.dimension, a.value - b.value);
      add('sum', a.dimension, a.value + b.value);
    }
  }
  return new Map(
    [...all].map(([dimension, candidates]) => {
      candidates.sort((a, b) => a.magnitude - b.magnitude);
      return [dimension, { all: candidates, magnitudes: candidates.map(({ magnitude }) => magnitude) }];
    }),
  );
}

function findComputed(
  number: WrittenNumber,
  computed: ReadonlyMap<Dimension, ComputedValues>,
): Computed | null {
  const [low, high] = span(number.value, number.rounding * slack, number.unit?.scale ?? 1);
  const candidates = dimensionsOf(number).flatMap((dimension) => computed.get(dimension) ?? []);
  const found = candidates.find(({ magnitudes }) => anyWithin(magnitudes, low, high));
  if (!found) return null;
  const lists = candidates.map(({ magnitudes }) => magnitudes);
  if (agreesByChance(number, lists, byChance.elsewhere)) return null;
  return found.all[firstFrom(found.magnitudes, low)]!;
}

function distinct(values: readonly KnownValue[]): KnownValue[] {
  const seen = new Map(values.map((value) => [`${value.query} ${value.dimension} ${value.value}`, value]));
  return [...seen.values()];
}

/** Whether more than this share of numbers of its size and digits match one of the values. */
function agreesByChance(
  number: WrittenNumber,
  lists: readonly (readonly number[])[],
  maxChance: number,
): boolean {
  const { rounding, unit } = number;
  const value = Math.abs(number.value);
  return (
    countStepsNearby(lists, value, rounding, unit?.scale ?? 1, maxChance) / stepsNearby(value, rounding) >
    maxChance
  );
}

/** Number of steps of the last digit near the number that some value takes. */
function countStepsNearby(
  lists: readonly (readonly number[])[],
  value: number,
  rounding: number,
  scale: number,
  maxChance: number,
): number {
  const range = [(value / nearby) * scale, nearby * value * scale] as const;
  return countSteps(lists, range, 2 * rounding * slack * scale, maxChance * stepsNearby(value, rounding));
}

const stepsNearby = (value: number, rounding: number): number =>
  Math.max(1, ((nearby - 1 / nearby) * value) / (2 * rounding * slack));
