import type { Spread } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';

/** Type in which a median stores its values. */
type ValueType = 'BIGINT' | 'INTEGER';

/**
 * SQL columns of a Spread over `expression`; sd is the sample's, null for one value. Medians are exact.
 * @param type of the values of the median, if all are integers that fit it
 */
export function spreadColumns(expression: string, prefix = '', type?: ValueType): string {
  const value = type === undefined ? expression : `(${expression})::${type}`;
  return `count(${expression}) AS ${prefix}count, sum(${expression})::DOUBLE AS ${prefix}total_ns,
    median(${value}) AS ${prefix}median_ns,
    min(${expression}) AS ${prefix}min_ns, max(${expression}) AS ${prefix}max_ns,
    stddev_samp(${expression}) AS ${prefix}sd_ns`;
}

/** The Spread in a row's columns, in schema order and without other columns; null if the count is 0. */
export function spreadOf(row: object, prefix = ''): Spread | null {
  const values = row as Record<string, number | null>;
  const column = (key: string) => values[`${prefix}${key}`];
  const count = column('count') ?? 0;
  if (count === 0) return null;
  return {
    count,
    total_ns: column('total_ns') ?? 0,
    mean_ns: (column('total_ns') ?? 0) / count,
    median_ns: column('median_ns') ?? 0,
    min_ns: column('min_ns') ?? 0,
    max_ns: column('max_ns') ?? 0,
    sd_ns: column('sd_ns') ?? null,
  };
}

/**
 * Rows of a statement with medians of durations, ns. Medians of millions take a third less time with 32 bits; if a
 * value exceeds these (2.1 s), the statement runs again with 64 bits.
 */
export async function queryDurations<T extends object>(
  database: Pick<SessionDatabase, 'query'>,
  sql: (type: ValueType) => string,
): Promise<T[]> {
  try {
    return await database.query<T>(sql('INTEGER'));
  } catch (error) {
    if (!(error instanceof Error && error.message.includes('out of range'))) throw error;
    return database.query<T>(sql('BIGINT'));
  }
}
