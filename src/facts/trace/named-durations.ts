import type { Spread } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

/** Events of one name and their durations. */
export interface NamedDurations extends Spread {
  name: string;
  /** Linear interpolation (type 7), ns. */
  p95_ns: number;
  /**
   * Counts from the shortest to the longest; one bin if all durations are equal. The ends of every bin have the same
   * ratio, so that one long duration does not put all others into one bin.
   */
  bins: { from_ns: number; to_ns: number; count: number }[];
  /** The first of the longest, ns since the session's start. */
  longest: { start_ns: number; end_ns: number };
}

const maxBins = 40;

/**
 * All names with durations, the most time first.
 * @param events SQL of a relation with name, dur_ns and start_ns
 */
export async function readNamedDurations(
  database: SessionDatabase,
  events: string,
): Promise<NamedDurations[]> {
  const rows = await queryDurations<{ name: string; p95_ns: number; start_ns: number }>(
    database,
    (type) =>
      `SELECT name, ${spreadColumns('dur_ns', '', type)}, quantile_cont(dur_ns, 0.95)::DOUBLE AS p95_ns, arg_max(start_ns, (dur_ns, -start_ns)) AS start_ns
       FROM ${events} GROUP BY name ORDER BY total_ns DESC, name`,
  );
  const binCounts = await database.query<{ name: string; bin: number; count: number }>(
    `SELECT name, least(n - 1, floor(n * ln(greatest(dur_ns, 1) / low) / greatest(ln(high / low), 1e-9)))::INTEGER AS bin, count(*) AS count
     FROM ${events} JOIN (SELECT name, greatest(min(dur_ns), 1) AS low, greatest(max(dur_ns), 1) AS high, least(${maxBins}, greatest(1, high - low)) AS n FROM ${events} GROUP BY name) USING (name)
     GROUP BY 1, 2`,
  );
  const binsByName = new Map<string, { bin: number; count: number }[]>();
  for (const { name, ...durations } of binCounts) {
    const nameBins = binsByName.get(name);
    if (nameBins) nameBins.push(durations);
    else binsByName.set(name, [durations]);
  }
  return rows.flatMap((row) => {
    const spread = spreadOf(row);
    if (!spread) return [];
    const { name, p95_ns, start_ns } = row;
    const [low, high] = [Math.max(1, spread.min_ns), Math.max(1, spread.max_ns)];
    const length = Math.min(maxBins, Math.max(1, high - low));
    const edge = (bin: number): number => low * (high / low) ** (bin / length);
    const bins = Array.from({ length }, (_, bin) => ({
      from_ns: edge(bin),
      to_ns: edge(bin + 1),
      count: 0,
    }));
    for (const { bin, count } of binsByName.get(name) ?? []) bins[bin]!.count = count;
    const longest = { start_ns, end_ns: start_ns + spread.max_ns };
    return [{ ...spread, name, p95_ns, bins, longest }];
  });
}
