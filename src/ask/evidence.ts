import { checkClaims } from './check-claims.js';
import type { RecordedQuery } from './recorder.js';
import { type KnownValue, numbersIn, valuesOf } from './values.js';

/**
 * Numbers that may be stated: what the queries returned. A query that failed returned nothing (its message may quote the
 * query), and one that reads no table has only worked with the numbers in its own text, which must be known then.
 */
export function evidenceOf(queries: readonly RecordedQuery[], question: string): KnownValue[] {
  const known: KnownValue[] = [];
  for (const { id, tool, input, error, data } of queries) {
    if (error !== null) continue;
    if (tool === 'sql' && !/\bfrom\b/i.test(input ?? '') && !ofKnownNumbers(input ?? '', known, question))
      continue;
    known.push(...valuesOf(data, id));
  }
  return known;
}

/** A literal has no unit: it is tried in those that times, shares, sizes and rates are told in. */
const units = ['', ' ms', ' µs', ' ns', ' s', ' %', ' GB', ' MB', ' B', ' TB/s', ' GB/s', ' TFLOP/s'];

function ofKnownNumbers(sql: string, known: readonly KnownValue[], question: string): boolean {
  return numbersIn(sql).every(({ text, value }) => {
    const bare = text.trim();
    // Changing a unit.
    if (Number.isInteger(Math.log10(Math.abs(value))) || value === 1024) return true;
    return units.some((unit) =>
      checkClaims(`${bare}${unit}`, known, question).claims.every(({ verified }) => verified),
    );
  });
}
