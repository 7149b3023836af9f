import { isRecomputedSql } from '../../model/metric-source.js';
import { interval95, mean } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { type MetricRow, metricRank, readSummaries } from '../../facts/benchmark-results/results.js';
import type { MetricPart } from './metric-parts.js';

type ComparedRow = Omit<MetricRow, 'definition' | 'source'> & { recomputed: boolean };

/** Metrics with a better direction; counts and lengths are conditions. */
const directions: Record<string, MetricPart['better']> = {
  ms: 'lower',
  s: 'lower',
  B: 'lower',
  J: 'lower',
  'tok/s': 'higher',
  'req/s': 'higher',
  'samples/s': 'higher',
  'tokens/kWh': 'higher',
};
/** The duration of a benchmark is chosen by the user. */
const conditions = new Set(['duration']);
const comparedStatistics = ['value', 'mean', 'median', 'p99', 'max'];

/**
 * Figures of result files. A name has one definition, so that only equal definitions are compared. Figures recomputed
 * from requests are preferred over the file's. Files or lines with the same label are repeated runs, but a summary and
 * the requests of one run are one.
 */
export async function resultParts(
  captures: Session['manifest']['captures'],
  database: SessionDatabase,
): Promise<MetricPart[]> {
  const metricRows = await database.query<ComparedRow>(
    `SELECT capture_id, point, label, name, same_definition, statistic, value, unit, n, ${isRecomputedSql} AS recomputed FROM metrics
     ORDER BY recomputed DESC, capture_id, point, name, statistic`,
  );
  const summaries = await readSummaries(captures, database);
  // The summary names the load; the requests may not.
  const labelsOf = new Map(
    [...summaries].map(([summary, detailed]) => [
      detailed,
      metricRows.find(({ capture_id }) => capture_id === summary)?.label,
    ]),
  );
  const rows = metricRows.map((row) => ({
    ...row,
    label: labelsOf.get(row.capture_id) ?? row.label,
    capture_id: summaries.get(row.capture_id) ?? row.capture_id,
  }));
  const labels = new Set(rows.map(({ label }) => label));
  const keys = new Map<string, ComparedRow[]>();
  for (const row of rows) {
    if (!directions[row.unit] || conditions.has(row.name) || !comparedStatistics.includes(row.statistic))
      continue;
    // "max" is a condition for latencies, but the main figure for memory.
    if (row.statistic === 'max' && row.unit !== 'B') continue;
    const key = [row.label, row.name, row.statistic, row.unit].join('\n');
    keys.set(key, [...(keys.get(key) ?? []), row]);
  }
  const ordered = [...keys.values()].toSorted(
    ([a], [b]) =>
      a!.point - b!.point ||
      metricRank(a!) - metricRank(b!) ||
      a!.name.localeCompare(b!.name, 'en') ||
      comparedStatistics.indexOf(a!.statistic) - comparedStatistics.indexOf(b!.statistic),
  );
  return ordered.map((all): MetricPart => {
    const runs = all.filter(
      (row, i) =>
        all.findIndex(
          (comparedRow) => comparedRow.capture_id === row.capture_id && comparedRow.point === row.point,
        ) === i,
    );
    const [first] = runs as [ComparedRow, ...ComparedRow[]];
    const values = runs.map(({ value }) => value);
    const several = values.length > 1;
    return {
      point: labels.size > 1 ? first.label : null,
      name: ['mean', 'value'].includes(first.statistic) ? first.name : `${first.name}.${first.statistic}`,
      unit: first.unit,
      better: directions[first.unit]!,
      value: mean(values),
      launches: several ? values : [],
      repeats: [],
      interval: several ? null : intervalOf(first, rows),
      source: 'metrics',
    };
  });
}

/** Mean ± t · sd / √n within the run; null if the file has no sample deviation. */
function intervalOf(row: ComparedRow, rows: readonly ComparedRow[]): MetricPart['interval'] {
  const { n, value } = row;
  if (row.statistic !== 'mean' || n === null || n < 2) return null;
  // Rows are sorted so that the recomputed deviation comes first; both are over the same n values.
  const sameValues = (statistic: string) =>
    rows.find(
      (comparedRow) =>
        comparedRow.capture_id === row.capture_id &&
        comparedRow.point === row.point &&
        comparedRow.name === row.name &&
        comparedRow.statistic === statistic &&
        comparedRow.n === n,
    )?.value;
  const population = sameValues('sd_population');
  const sd = sameValues('sd') ?? (population === undefined ? undefined : population * Math.sqrt(n / (n - 1)));
  if (sd === undefined) return null;
  return { n, ci95: interval95(value, sd, n), over_launches: false };
}
