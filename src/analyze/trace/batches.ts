import type { PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { literal, type TraceScope } from './scope.js';
import { spreadColumns, spreadOf } from './spread.js';

type Batch = TracePhase['by_batch'][number];

const kinds = "('prefill', 'decode', 'mixed', 'sampling')";

/**
 * Windows of each phase by batch size, where a capture holds several: a mean over batch 1 and batch 8 is nobody's. The
 * size is what the range says, else what the workload's own record of the same execution says of the n-th stage of this
 * kind, where both have as many. Empty for phases of one size. Needs the table `window_split`.
 */
export async function batches({ database, source }: TraceScope): Promise<Map<PhaseKind, Batch[]>> {
  const { execution_id, capture_id } = source.attribution;
  const numbered = (from: string) =>
    `SELECT *, row_number() OVER same AS nth, count(*) OVER (PARTITION BY capture_id, kind, coalesce(warmup, false)) AS among
     FROM ${from} WINDOW same AS (PARTITION BY capture_id, kind, coalesce(warmup, false) ORDER BY start_ns, stage_id)`;
  const columns = 'capture_id, stage_id, kind, warmup, start_ns, batch_size';
  const rows = await database.query<Record<string, number> & { kind: PhaseKind }>(
    `WITH own AS (${numbered(`(SELECT ${columns} FROM focus_stages WHERE kind IN ${kinds})`)}),
     told AS (${numbered(
       `(SELECT ${columns} FROM stages WHERE execution_id = ${literal(execution_id)} AND capture_id <> ${literal(capture_id)}
           AND coalesce(rank, 0) = ${source.focus.rank ?? 0} AND kind IN ${kinds})`,
     )}),
     known AS (
       SELECT own.stage_id, coalesce(own.batch_size, min(told.batch_size)) AS batch_size FROM own
       LEFT JOIN told ON told.kind = own.kind AND coalesce(told.warmup, false) = coalesce(own.warmup, false)
         AND told.nth = own.nth AND told.among = own.among
       GROUP BY own.stage_id, own.batch_size)
     SELECT w.kind, k.batch_size, ${spreadColumns('wall_ns')}, avg(idle) AS idle, avg(w.kernels) AS kernels, avg(w.launches) AS launches
     FROM window_split w JOIN known k USING (stage_id) WHERE k.batch_size IS NOT NULL
     GROUP BY w.kind, k.batch_size ORDER BY w.kind, k.batch_size`,
  );
  const found = new Map<PhaseKind, Batch[]>();
  for (const row of rows) {
    const wall = spreadOf(row)!;
    const idle = row['idle'] ?? 0;
    const batch: Batch = {
      batch_size: row['batch_size']!,
      wall,
      busy_ns: wall.mean_ns - idle,
      idle_ns: idle,
      idle_share: wall.mean_ns > 0 ? idle / wall.mean_ns : 0,
      kernels: row['kernels'] ?? 0,
      launches: row['launches'] ?? 0,
    };
    found.set(row.kind, [...(found.get(row.kind) ?? []), batch]);
  }
  for (const [kind, sizes] of found) if (sizes.length < 2) found.delete(kind);
  return found;
}
