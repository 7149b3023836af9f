import type { Spread } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

/** Events of one name and their durations. */
export interface NamedDurations extends Spread {
  name: string;
  /** Linear interpolation (type 7), ns. */
  p95_ns: number;
  /** Counts in bins of equal width from the shortest to the longest; one bin if all durations are equal. */
  bins: number[];
  /** The first of the longest, ns since the session's start. */
  longest: { start_ns: number; end_ns: number };
}

const binsShown = 40;

/**
 * All names with durations, the most time first.
 * @param events SQL of a relation with name, dur_ns and start_ns
 */
export async function namedDurations(database: SessionDatabase, events: string): Promise<NamedDurations[]> {
  const rows = await queryDurations<{ name: string; p95_ns: number; start_ns: number }>(
    database,
    (type) =>
      `SELECT name, ${spreadColumns('dur_ns', '', type)}, quantile_cont(dur_ns, 0.95)::DOUBLE AS p95_ns, arg_max(start_ns, (dur_ns, -start_ns)) AS start_ns
       FROM ${events} GROUP BY name ORDER BY total_ns DESC, name`,
  );
  const binCounts = await database.query<{ name: string; bin: number; count: number }>(
    `SELECT name, least(n - 1, floor((dur_ns - low) / greatest((high - low) / n, 1e-9)))::INTEGER AS bin, count(*) AS count
     FROM ${events} JOIN (SELECT name, min(dur_ns) AS low, max(dur_ns) AS high, least(${binsShown}, greatest(1, max(dur_ns) - min(dur_ns))) AS n FROM ${events} GROUP BY name) USING (name)
     GROUP BY 1, 2`,
  );
  const bins = new Map<string, { bin: number; count: number }[]>();
  for (const { name, ...durations } of binCounts) {
    const known = bins.get(name);
    if (known) known.push(durations);
    else bins.set(name, [durations]);
  }
  return rows.flatMap((row) => {
    const spread = spreadOf(row);
    if (!spread) return [];
    const { name, p95_ns, start_ns } = row;
    const length = Math.min(binsShown, Math.max(1, spread.max_ns - spread.min_ns));
    const counts = Array.from({ length }, () => 0);
    for (const { bin, count } of bins.get(name) ?? []) counts[bin] = count;
    const longest = { start_ns, end_ns: start_ns + spread.max_ns };
    return [{ ...spread, name, p95_ns, bins: counts, longest }];
  });
}
