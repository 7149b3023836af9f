/** One number of a result file: a row of the table `metrics` without its keys. */
export interface ResultMetric {
  name: string;
  same_definition: boolean;
  statistic: string;
  value: number;
  unit: string;
  n: number | null;
  definition: string | null;
  source: string;
}

/**
 * `metrics.source` starts with a code: `recomputed` and what from, or `file: ` and the field. Only these functions read it; sessions of
 * every version have it.
 */
const [recomputedCode, fileCode] = ['recomputed', 'file: '];

/** SQL: whether a row was computed from the requests of its file, not written by the tool. */
export const isRecomputedSql = `starts_with(source, '${recomputedCode}')`;

export const isRecomputed = (source: string): boolean => source.startsWith(recomputedCode);

/** Field of the tool's file; the source itself if it names no field. */
export const fieldOf = (source: string): string =>
  source.startsWith(fileCode) ? source.slice(fileCode.length) : source;
