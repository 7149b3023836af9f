import type { Claim } from '../model/documents/analyze.js';
import { type KnownValue, valuesOf } from './values.js';
import { numbersIn, type WrittenNumber } from './written-numbers.js';

/** Ordinals, a pair, "1.0 of something": small whole numbers are counted by everybody. */
const trivial = new Set([0, 1, 2]);
/** Beyond so many values of the cited queries any number is the ratio of some two of them. */
const mostForPairs = 40;
/** Where a number stands in for more digits than it shows: "about 3 ms". */
const slack = 1.02;
/** A number holds only where a random one of its size and digits would agree by chance less often than this. */
const byChance = { cited: 0.9, elsewhere: 0.15 };
/** Values this near to a number are looked at: between four fifths and five quarters of it. */
const nearby = 1.25;
/** Of fewer steps of its last digit in there nothing can be told: two digits of a percentage. */
const fewestSteps = 6;
/** Whole numbers up to here agree with anything; the query that its sentence cites is asked for, and that is all. */
const smallCount = 100;

export interface CheckedAnswer {
  /** The answer with " (unverified)" behind every number that nothing returned, and " (no such query)" in citations of none. */
  text: string;
  claims: Claim[];
}

/**
 * Whether a tool returned the numbers that an answer states. A number holds when it is one of the values of the queries
 * that its sentence cites, in its unit and to the digits shown, or the ratio, difference, sum or relative change of two of
 * them; without a citation, and for what is worked out, only where it would hardly agree by chance: with hundreds of values
 * some number fits anything. A value of no known unit answers for no unit. Numbers of the question itself are no claims.
 * @param queries ids that can be cited; null for those of the values
 */
export function checkClaims(
  answer: string,
  known: readonly KnownValue[],
  question: string,
  queries: ReadonlySet<string> | null = null,
): CheckedAnswer {
  const asked = valuesOf(question, 'question');
  const there = queries ?? new Set(known.map(({ query }) => query));
  const marks: { at: number; mark: string; claim: Claim | null }[] = [];
  for (const number of numbersIn(answer)) {
    if (isOrdinal(answer, number)) continue;
    const claim = claimOf(number, known, asked, citedAround(answer, number));
    marks.push({ at: number.end, mark: claim.verified ? '' : ' (unverified)', claim });
  }
  for (const { index, 0: id } of answer.matchAll(/(?<=\[[^\]\n]*)\bq\d+\b(?=[^[\n]*\])/g)) {
    if (there.has(id)) continue;
    const claim: Claim = { text: id, verified: false, queries: [], how: null };
    marks.push({ at: index + id.length, mark: ' (no such query)', claim });
  }
  let text = '';
  let from = 0;
  for (const { at, mark } of marks.toSorted((a, b) => a.at - b.at)) {
    text += answer.slice(from, at) + mark;
    from = at;
  }
  return { text: text + answer.slice(from), claims: marks.flatMap(({ claim }) => claim ?? []) };
}

/** Units that values of a dimension are told in. */
const usualScales: Partial<Record<KnownValue['dimension'], readonly number[]>> = {
  time: [1, 1e3, 1e6, 1e9],
  ratio: [1, 0.01],
  bytes: [1, 1e6, 1e9, 2 ** 20, 2 ** 30],
  bytes_rate: [1, 1e9, 1e12],
  flop_rate: [1, 1e9, 1e12],
};

/** Whether a bare number is one of the values in some unit that values are told in, and would hardly be by chance. */
export function agreesWith(value: number, known: readonly KnownValue[], question: string): boolean {
  const digits = /^[\d.]+/.exec(String(value))?.[0] ?? '';
  const rounding = 0.5 * 10 ** -(digits.split('.')[1]?.length ?? 0);
  if (valuesOf(question, 'question').some((one) => Math.abs(one.value - value) <= rounding * slack))
    return true;
  const all = known.flatMap(({ value: own, dimension }) =>
    (usualScales[dimension] ?? [1]).map((scale) => Math.abs(own) / scale),
  );
  return (
    all.some((one) => Math.abs(one - value) <= rounding * slack) &&
    chance(value, rounding, all) <= byChance.elsewhere
  );
}

/** "1." or "2)" at the beginning of a line. */
function isOrdinal(answer: string, { start, end, unit }: WrittenNumber): boolean {
  const line = answer.slice(answer.lastIndexOf('\n', start - 1) + 1, start);
  return unit === null && /^\s*(?:[-*#]+\s*)?$/.test(line) && /^[.)]\s/.test(answer.slice(end, end + 2));
}

/** [q1], [q2, q3] in the same sentence. */
function citedAround(answer: string, { start, end }: WrittenNumber): Set<string> {
  const before = answer.slice(0, start);
  const from = Math.max(
    before.lastIndexOf('\n'),
    ...[...before.matchAll(/[.!?]\s/g)].map(({ index }) => index),
  );
  const after = /[.!?](?:\s|$)|\n/.exec(answer.slice(end));
  const sentence = answer.slice(from + 1, after ? end + after.index + 1 : answer.length);
  // A citation may stand behind the full stop.
  const behind =
    /^\s*(?:\[q[^\]]*\]\s*)+/.exec(answer.slice(after ? end + after.index + 1 : answer.length))?.[0] ?? '';
  return new Set([...`${sentence}${behind}`.matchAll(/\bq\d+\b/g)].map(([id]) => id));
}

function claimOf(
  number: WrittenNumber,
  known: readonly KnownValue[],
  asked: readonly KnownValue[],
  cited: ReadonlySet<string>,
): Claim {
  const { text, value, unit } = number;
  const claim = (how: Claim['how'], queries: string[]): Claim => ({
    text,
    verified: how !== null,
    queries: [...new Set(queries)],
    how,
  });
  const own = known.filter(({ query }) => cited.has(query));
  const here = returnedBy(number, own, byChance.cited);
  if (here) return claim('returned', [here.query]);
  if (asked.some((one) => holds(number, one)) || (unit === null && trivial.has(value)))
    return claim('question', []);
  const elsewhere = returnedBy(
    number,
    known.filter(({ query }) => !cited.has(query)),
    byChance.elsewhere,
  );
  if (elsewhere) return claim('returned', [elsewhere.query]);
  const worked = workedOut(number, distinct(own));
  return worked ? claim(worked.how, worked.queries) : claim(null, []);
}

/** The value that it is, unless there are so many that one of them had to fit. */
function returnedBy(number: WrittenNumber, values: readonly KnownValue[], most: number): KnownValue | null {
  const found = values.find((one) => holds(number, one)) ?? null;
  if (!found) return null;
  const tooCoarse = stepsNearby(Math.abs(number.value), number.rounding) < fewestSteps;
  if (most === byChance.cited && (isSmallCount(number) || tooCoarse)) return found;
  return chanceOf(number, values) <= most ? found : null;
}

const isSmallCount = ({ value, unit }: WrittenNumber): boolean =>
  unit === null && Number.isInteger(value) && Math.abs(value) < smallCount;

interface Worked {
  how: 'ratio' | 'difference' | 'sum';
  queries: string[];
  value: KnownValue;
}

/** Ratio, difference, sum or relative change of two values of one dimension. */
function workedOut(number: WrittenNumber, values: readonly KnownValue[]): Worked | null {
  if (values.length > mostForPairs) return null;
  const pairs: Worked[] = [];
  for (const a of values) {
    for (const b of values) {
      if (a === b || a.dimension !== b.dimension) continue;
      const queries = [a.query, b.query];
      const add = (how: Worked['how'], value: Partial<KnownValue>) =>
        pairs.push({ how, queries, value: { ...a, ...value } });
      if (b.value !== 0) {
        add('ratio', { value: a.value / b.value, dimension: 'ratio' });
        add('ratio', { value: 1 - a.value / b.value, dimension: 'ratio' });
      }
      add('difference', { value: a.value - b.value });
      add('sum', { value: a.value + b.value });
    }
  }
  const found = pairs.find(({ value }) => holds(number, value));
  if (!found) return null;
  const all = pairs.map(({ value }) => value);
  return chanceOf(number, all) <= byChance.elsewhere ? found : null;
}

function distinct(values: readonly KnownValue[]): KnownValue[] {
  const seen = new Map(values.map((one) => [`${one.query} ${one.dimension} ${one.value}`, one]));
  return [...seen.values()];
}

const chanceOf = (number: WrittenNumber, values: readonly KnownValue[]): number =>
  chance(
    Math.abs(number.value),
    number.rounding,
    values.filter((one) => fits(number, one)).map((one) => Math.abs(one.value) / (number.unit?.scale ?? 1)),
  );

/**
 * The share of the numbers of this size and these digits that agree with one of the values, over the steps of the last
 * digit nearby. 1 and more: whatever is written agrees.
 */
function chance(value: number, rounding: number, values: readonly number[]): number {
  const step = 2 * rounding * slack;
  const near = values.filter((one) => one >= value / nearby && one <= nearby * value);
  const steps = new Set(near.map((one) => Math.round(one / step)));
  return steps.size / stepsNearby(value, rounding);
}

const stepsNearby = (value: number, rounding: number): number =>
  Math.max(1, ((nearby - 1 / nearby) * value) / (2 * rounding * slack));

/** Whether a value may answer for a number: the same dimension; without a unit what is counted, and shares. */
function fits({ unit }: WrittenNumber, { dimension }: KnownValue): boolean {
  if (unit === null) return dimension === 'plain' || dimension === 'unknown' || dimension === 'ratio';
  return dimension === unit.dimension;
}

function holds(number: WrittenNumber, known: KnownValue): boolean {
  if (!fits(number, known)) return false;
  const { value, unit, rounding } = number;
  return Math.abs(Math.abs(known.value) / (unit?.scale ?? 1) - Math.abs(value)) <= rounding * slack;
}
