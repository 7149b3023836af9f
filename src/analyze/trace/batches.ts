import type { PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { literal, scopeKey, type TraceScope } from './scope.js';
import { spreadColumns, spreadOf } from './spread.js';

type Batch = TracePhase['by_batch'][number];

const kinds = "('prefill', 'decode', 'mixed', 'sampling')";

const sizes = ['batch_size', 'new_tokens', 'context_tokens_sum'] as const;

/**
 * Makes `known_sizes` (stage_id, batch_size, new_tokens, context_tokens_sum): sizes of each stage of the focus by its
 * range, else by what the workload's own record of the same execution says of that stage of that process, else of the
 * n-th stage of this kind, where both have as many.
 */
export async function makeKnownSizes({ database, source }: TraceScope): Promise<void> {
  const { execution_id, capture_id } = source.attribution;
  const numbered = (from: string) =>
    `SELECT *, row_number() OVER same AS nth, count(*) OVER (PARTITION BY capture_id, kind, coalesce(warmup, false)) AS among
     FROM ${from} WINDOW same AS (PARTITION BY capture_id, kind, coalesce(warmup, false) ORDER BY start_ns, stage_id)`;
  const columns = `capture_id, stage_id, kind, warmup, start_ns, pid, iteration, step_index, ${sizes.join(', ')}`;
  const own = numbered(`(SELECT ${columns} FROM focus_stages WHERE kind IN ${kinds})`);
  const told = numbered(
    `(SELECT ${columns} FROM stages WHERE execution_id = ${literal(execution_id)} AND capture_id <> ${literal(capture_id)}
        AND coalesce(rank, 0) = ${source.focus.rank ?? 0} AND kind IN ${kinds})`,
  );
  await database.once(
    'known_sizes',
    scopeKey(source),
    `WITH own_sizes AS (${own}), told_sizes AS (${told})
      SELECT o.stage_id, ${sizes.map((size) => `coalesce(o.${size}, min(e.${size}), min(t.${size})) AS ${size}`).join(', ')}
      FROM own_sizes o LEFT JOIN told_sizes t ON t.kind = o.kind
        AND coalesce(t.warmup, false) = coalesce(o.warmup, false) AND t.nth = o.nth AND t.among = o.among
      LEFT JOIN told_sizes e ON e.pid = o.pid AND e.kind = o.kind AND e.iteration = o.iteration AND e.step_index = o.step_index
      GROUP BY o.stage_id, ${sizes.map((size) => `o.${size}`).join(', ')}`,
  );
}

/**
 * Windows of each phase by batch size, where a capture holds several: a mean over batch 1 and batch 8 is nobody's.
 * Empty for phases of one size. Needs the table `window_split`.
 */
export async function batches(scope: TraceScope): Promise<Map<PhaseKind, Batch[]>> {
  await makeKnownSizes(scope);
  const rows = await scope.database.query<Record<string, number> & { kind: PhaseKind }>(
    `SELECT w.kind, k.batch_size, ${spreadColumns('wall_ns')}, avg(idle) AS idle, avg(w.kernels) AS kernels, avg(w.launches) AS launches
     FROM window_split w JOIN known_sizes k USING (stage_id) WHERE k.batch_size IS NOT NULL
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
