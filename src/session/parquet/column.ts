import type { ColumnType } from '../../model/columns.js';
import { createOutput, deltaPacked, type Output, outputSize, repeatedRun } from './encodings.js';
import {
  chunkOf,
  codesInto,
  type ColumnChunk,
  dataPage,
  dictionaryPage,
  encodings,
  levelRun,
  levels,
  numbersPlain,
  encodePlain,
  type ColumnStats,
  textsPlain,
} from './pages.js';
import type { ColumnSpec } from './file-column.js';

/** Maximum distinct numbers in a dictionary; with more, differences are written. */
const dictionaryNumbers = 64;

/** A table of LookedUpCodes in which each code is its own value. */
const identity = Int32Array.from({ length: dictionaryNumbers + 1 }, (_, index) => index - 1);

/** Reusable buffers to encode columns one after the other. */
export interface Scratch {
  out: Output;
  compact: Float64Array;
  codes: Int32Array;
}

/** @param rows maximum rows of a group */
export const createScratch = (rows: number): Scratch => ({
  out: createOutput(outputSize(rows)),
  compact: new Float64Array(rows + 8),
  codes: new Int32Array(rows + 8),
});

/** NaN becomes null. */
export function numbersChunk(
  { out, compact, codes }: Scratch,
  type: ColumnType,
  values: Float64Array,
  count: number,
): ColumnChunk {
  const stats = statisticsOf(values, count);
  const { present } = stats;
  const dense = present === count ? values : withoutNulls(values, count, present, compact);
  let offset = definitionLevels(out, values, count, present);
  if (present === 0)
    return chunkOf(type, count, [dataPage(out, offset, count, encodings.plain)], { present });
  if (type === 'BOOLEAN' || type === 'DOUBLE') {
    offset = encodePlain(out, offset, dense, present, type);
    return chunkOf(type, count, [dataPage(out, offset, count, encodings.plain)], { present });
  }
  const distinct = fewDistinct(dense, present, codes);
  if (distinct) {
    offset = codesInto(out, offset, { table: identity, codes }, present, distinct.length);
    const dictionary = dictionaryPage(numbersPlain(distinct, type), distinct.length);
    return chunkOf(type, count, [dictionary, dataPage(out, offset, count, encodings.dictionary)], stats);
  }
  offset = deltaPacked(out, offset, dense, present);
  return chunkOf(type, count, [dataPage(out, offset, count, encodings.delta)], stats);
}

/** One value, or null, in every row. */
export function constantChunk({ type, texts }: ColumnSpec, value: number | null, count: number): ColumnChunk {
  const out = createOutput(256);
  const present = value === null ? 0 : count;
  let offset = levelRun(out, count, present > 0 ? 1 : 0);
  if (value === null)
    return chunkOf(type, count, [dataPage(out, offset, count, encodings.plain)], { present });
  out.bytes[offset++] = 0;
  offset = repeatedRun(out, offset, 0, count, 0);
  const entry = type === 'VARCHAR' ? textsPlain([Buffer.from(texts[value]!)]) : numbersPlain([value], type);
  const pages = [dictionaryPage(entry, 1), dataPage(out, offset, count, encodings.dictionary)];
  return chunkOf(type, count, pages, {
    present,
    ...(type === 'VARCHAR' ? { text: Buffer.from(texts[value]!) } : { min: value, max: value }),
  });
}

function definitionLevels(out: Output, values: Float64Array, count: number, present: number): number {
  if (present === count || present === 0) return levelRun(out, count, present > 0 ? 1 : 0);
  const codeOfRow = new Int32Array(count);
  for (let i = 0; i < count; i++) codeOfRow[i] = Number.isNaN(values[i]!) ? 0 : 1;
  return levels(out, { table: identity, codes: codeOfRow }, count);
}

/** @returns the distinct values if there are few; their codes are written to `codes` */
function fewDistinct(values: Float64Array, count: number, codes: Int32Array): number[] | null {
  const codeOf = new Map<number, number>();
  let last = Number.NaN;
  let lastCode = 0;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    if (value !== last) {
      last = value;
      const code = codeOf.get(value);
      if (code === undefined) {
        if (codeOf.size === dictionaryNumbers) return null;
        lastCode = codeOf.size;
        codeOf.set(value, lastCode);
      } else lastCode = code;
    }
    codes[i] = lastCode;
  }
  return [...codeOf.keys()];
}

/** Number of non-null values, and their bounds. A typical value costs two comparisons. */
function statisticsOf(values: Float64Array, count: number): Required<Omit<ColumnStats, 'text'>> {
  let nulls = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    if (value >= min) {
      if (value > max) max = value;
    } else if (value < min) {
      min = value;
      if (value > max) max = value;
    } else nulls++;
  }
  return { present: count - nulls, min, max };
}

function withoutNulls(
  values: Float64Array,
  count: number,
  present: number,
  into: Float64Array,
): Float64Array {
  let offset = 0;
  for (let i = 0; i < count && offset < present; i++) {
    const value = values[i]!;
    if (value === value) into[offset++] = value;
  }
  return into;
}
