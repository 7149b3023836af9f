import { agreesWith } from './check-claims.js';
import type { RecordedQuery } from './recorder.js';
import { ValueIndex, type KnownValue } from './value-index.js';
import { sqlUnits, withoutTexts } from './sql-units.js';
import { valuesOf } from './values.js';

/** Tools that return our texts or output of programs; other tools return names and documentation. */
const textTools = new Set(['findings', 'waterfall', 'comparison', 'program_output', 'model_arithmetic']);

/**
 * Numbers that an answer may state: those that queries returned. A failed query returned nothing (its message may quote the query).
 * Constants that a model writes into SQL are not measurements, unless the question has them or an earlier query returned them: a query that
 * returns one does not make it known, and one that computes with one is no evidence at all.
 * @param names texts with numbers, chosen by programs; they do not count
 */
export function evidenceOf(
  queries: readonly RecordedQuery[],
  question: string,
  names: readonly string[] = [],
): KnownValue[] {
  const known = new ValueIndex();
  const inQuestion = valuesOf(question, 'question');
  for (const { id, tool, input, error, data } of queries) {
    if (error !== null) continue;
    if (tool !== 'sql') {
      known.add(valuesOf(data, id, { texts: textTools.has(tool), names }));
      continue;
    }
    // 2**30, 10^6 and pow(10, 9) convert units, as 1024 does.
    const sql = withoutTexts(input ?? '').replaceAll(
      /\b(?:2|10)\s*(?:\*\*|\^)\s*\d+|\bpow(?:er)?\(\s*(?:2|10)\s*,\s*\d+\s*\)/gi,
      '1024',
    );
    const isKnown = (value: number) => agreesWith(value, known, inQuestion);
    if (operandsOf(sql).some((value) => !isConversion(value) && !isKnown(value))) continue;
    const unknownLiterals = new Set(literals(sql).filter((value) => !isKnown(value)));
    known.add(
      valuesOf(data, id, {
        texts: false,
        unitOf: sqlUnits(input ?? ''),
        isExcluded: (value) => unknownLiterals.has(value),
      }),
    );
  }
  return known.valuesOf(known.queries);
}

/** Whether a number counts or converts units: 0, 1 and 2, powers of ten and 1024, bits per byte, seconds per minute and hour. */
const isConversion = (value: number): boolean =>
  [0, 1, 2, 8, 60, 3600].includes(value) ||
  (value > 0 && (Number.isInteger(Math.log10(value)) || Number.isInteger(Math.log2(value) / 10)));

const numberSource = String.raw`(?<![\w.$])(\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)(?![\w.])`;
const parseNumber = (text: string): number => Number(text.replaceAll('_', ''));

/** Operands of + − * /. In floor(x / n) * n, n is a bucket width and not part of the result. */
function operandsOf(sql: string): number[] {
  const isSign = (operator: string, index: number): boolean =>
    operator === '-' &&
    /(?:[(,=<>]|\b(?:THEN|ELSE|SELECT|BETWEEN|AND|WHEN|LIMIT))\s*$/i.test(sql.slice(0, index));
  const before = [...sql.matchAll(new RegExp(String.raw`([-+*/])\s*\(?\s*${numberSource}`, 'gi'))].flatMap(
    ({ index, 1: operator, 2: text }) => (isSign(operator!, index) ? [] : [parseNumber(text!)]),
  );
  const after = [...sql.matchAll(new RegExp(String.raw`${numberSource}\s*(\)?)\s*[-+*/]`, 'gi'))].flatMap(
    // quantile_cont(x, 0.99) / 1e6: 0.99 is an argument.
    ({ index, 1: text, 2: closed }) =>
      closed && /,\s*$/.test(sql.slice(0, index)) ? [] : [parseNumber(text!)],
  );
  const width = new RegExp(String.raw`/\s*${numberSource}\s*\)\s*\*\s*${numberSource}`, 'gi');
  const buckets = new Set(
    [...sql.matchAll(width)].flatMap(([, by, times]) => (by === times ? [parseNumber(by!)] : [])),
  );
  return [...new Set([...before, ...after])].filter((value) => !buckets.has(value));
}

/** Numbers that a query could return unchanged: all but those that it compares with, limits by or converts units with. */
function literals(sql: string): number[] {
  return [...sql.matchAll(new RegExp(numberSource, 'gi'))]
    .filter(
      ({ index }) =>
        !/(?:[=<>]|\b(?:BETWEEN|AND|LIMIT|OFFSET|PRECEDING|INTERVAL|QUALIFY))\s*-?\s*$/i.test(
          sql.slice(0, index),
        ),
    )
    .map(([, text]) => parseNumber(text!))
    .filter((value) => !isConversion(value));
}
