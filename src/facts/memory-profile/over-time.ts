import type { SessionDatabase } from '../../session/query.js';

/** Memory use over time from one source. */
export interface MemoryOverTime {
  execution: string;
  /** A device, or the host. */
  place: string;
  rank: number | null;
  /** allocated, reserved, used, rss, … */
  kind: string;
  /** [s since the first sample of the execution, bytes], ordered by time. */
  points: [number, number][];
}

/** Maximum points per line. A bin shows its highest sample, so that peaks remain. */
const maxPoints = 1000;

/** Samples of memory captures, allocators and the driver, one series each, without those that have a single sample. */
export async function readMemoryOverTime(database: SessionDatabase): Promise<MemoryOverTime[]> {
  const rows = await database.query<{
    execution: string;
    place: string;
    rank: number | null;
    kind: string;
    s: number;
    bytes: number;
  }>(
    `WITH samples AS (
       SELECT execution_id, coalesce('GPU ' || device, 'host') AS place, rank, kind, t_ns, bytes::DOUBLE AS bytes
       FROM memory WHERE t_ns IS NOT NULL AND bytes IS NOT NULL AND kind <> 'allocation' AND kind NOT LIKE '%:%'
       UNION ALL SELECT execution_id, CASE WHEN scope LIKE 'gpu%' THEN 'GPU ' || substr(scope, 4) ELSE 'host' END, rank,
         CASE metric WHEN 'memory_used_bytes' THEN 'used' ELSE 'rss' END || ' (sampled)', t_ns, value
       FROM telemetry WHERE scope <> 'inferscope' AND execution_id NOT IN (SELECT execution_id FROM memory) AND metric IN ('memory_used_bytes', 'rss_bytes') AND value IS NOT NULL),
     span AS (SELECT execution_id, min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM samples GROUP BY 1)
     SELECT execution_id AS execution, place, rank, kind, arg_max(t_ns - low, bytes) / 1e9 AS s, max(bytes) AS bytes
     FROM samples JOIN span USING (execution_id)
     GROUP BY execution_id, place, rank, kind, ((t_ns - low)::HUGEINT * ${maxPoints} // width) ORDER BY 1, 2, 3, 4, 5`,
  );
  const series = new Map<string, MemoryOverTime>();
  for (const { s, bytes, ...labels } of rows) {
    const key = JSON.stringify(labels);
    const line = series.get(key) ?? { ...labels, points: [] };
    series.set(key, line);
    line.points.push([s, bytes]);
  }
  return [...series.values()].filter(({ points }) => points.length > 1);
}
