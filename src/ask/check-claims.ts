import type { Claim } from '../model/documents/analyze.js';
import { type KnownValue, numbersIn, valuesOf, type WrittenNumber } from './values.js';

/** Ordinals, a pair, "1.0 of something": small whole numbers are counted by everybody. */
const trivial = new Set([0, 1, 2]);
/** Beyond so many values of the cited queries any number is the ratio of some two of them. */
const mostForPairs = 40;
/** Where a number stands in for more digits than it shows: "about 3 ms". */
const slack = 1.02;

export interface CheckedAnswer {
  /** The answer with " (unverified)" behind every number that nothing returned. */
  text: string;
  claims: Claim[];
}

/**
 * Whether a tool returned the numbers that an answer states. A number holds when it is one of the values, in its unit
 * and to the digits shown, or the ratio, difference or sum of two values of the queries that its sentence cites.
 * Numbers in code and those of the question itself are no claims.
 */
export function checkClaims(answer: string, known: readonly KnownValue[], question: string): CheckedAnswer {
  const asked = valuesOf(question, 'question');
  const claims: Claim[] = [];
  let text = '';
  let at = 0;
  for (const number of numbersIn(answer)) {
    if (isOrdinal(answer, number)) continue;
    const claim = claimOf(number, known, asked, citedAround(answer, number));
    claims.push(claim);
    text += answer.slice(at, number.end);
    at = number.end;
    if (!claim.verified) text += ' (unverified)';
  }
  return { text: text + answer.slice(at), claims };
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
  const inOrder = [...known].sort((a, b) => Number(cited.has(b.query)) - Number(cited.has(a.query)));
  const returned = inOrder.find((one) => holds(number, one));
  if (returned) return claim('returned', [returned.query]);
  if (asked.some((one) => holds(number, one)) || (unit === null && trivial.has(value)))
    return claim('question', []);
  const own = distinct(known.filter(({ query }) => cited.has(query)));
  if (own.length > mostForPairs) return claim(null, []);
  for (const a of own) {
    for (const b of own) {
      if (a === b) continue;
      const both = [a.query, b.query];
      const same = a.dimension === b.dimension;
      if (same && b.value !== 0 && holds(number, { ...a, value: a.value / b.value, dimension: 'ratio' }))
        return claim('ratio', both);
      if (same && holds(number, { ...a, value: a.value - b.value })) return claim('difference', both);
      if (same && holds(number, { ...a, value: a.value + b.value })) return claim('sum', both);
    }
  }
  return claim(null, []);
}

function distinct(values: readonly KnownValue[]): KnownValue[] {
  const seen = new Map(values.map((one) => [`${one.query} ${one.dimension} ${one.value}`, one]));
  return [...seen.values()];
}

/** Scales that a value without a unit may have been meant in. */
const possible = {
  time: [1, 1e3, 1e6, 1e9],
  ratio: [1, 0.01],
  bytes: [1],
  rate: [1, 1e9, 1e12],
  plain: [1],
} as const;

function holds({ value, unit, rounding }: WrittenNumber, known: KnownValue): boolean {
  const near = (a: number, step: number) => Math.abs(a - Math.abs(value)) <= step * slack;
  const magnitude = Math.abs(known.value);
  if (unit === null) {
    // "42 launches", "0.91 of the step": as it is, or a share.
    if (known.dimension === 'plain' || known.dimension === 'unknown' || known.dimension === 'ratio')
      return near(magnitude, rounding);
    return false;
  }
  const scales = known.dimension === 'unknown' ? possible[unit.dimension] : [1];
  if (known.dimension !== 'unknown' && known.dimension !== unit.dimension) return false;
  return scales.some((scale) => near((magnitude * scale) / unit.scale, rounding));
}
