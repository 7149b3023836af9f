import type { PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { idleIn, phaseTime, slowdown } from '../../model/headline-time.js';
import { cleanTimeOf } from './clean-time.js';
import { makeKnownSizes } from './known-sizes.js';
import type { TraceScope } from './scope.js';
import { spreadColumns, spreadOf } from './spread.js';
import type { PhaseClock } from './windows.js';

type Batch = TracePhase['by_batch'][number];

/**
 * Windows of each phase by batch size, if a capture has several: a mean over mixed batch sizes is meaningless. Empty
 * for phases of one size.
 */
export async function readBatches(
  scope: TraceScope,
  clocks: readonly PhaseClock[],
): Promise<Map<PhaseKind, Batch[]>> {
  await makeKnownSizes(scope);
  await scope.need('window_split');
  const rows = await scope.database.query<Record<string, number> & { kind: PhaseKind }>(
    `SELECT w.kind, k.batch_size, ${spreadColumns('wall_ns')}, avg(idle) AS idle, avg(w.kernels) AS kernels, avg(w.launches) AS launches
     FROM window_split w JOIN known_sizes k USING (stage_id) WHERE k.batch_size IS NOT NULL
     GROUP BY w.kind, k.batch_size ORDER BY w.kind, k.batch_size`,
  );
  const batchesByKind = new Map<PhaseKind, Batch[]>();
  for (const row of rows) {
    const wall = spreadOf(row)!;
    const batch_size = row['batch_size']!;
    const clock = clocks.find(({ kind }) => kind === row.kind)?.clock ?? 'host';
    const clean_ms = await cleanTimeOf(scope, { kind: row.kind, clock }, batch_size);
    const timeNs = 1e6 * phaseTime({ clean_ms, wall }).ms;
    const profiled = { busy: wall.mean_ns - (row['idle'] ?? 0), idle: row['idle'] ?? 0 };
    const busy_ns = slowdown(profiled, timeNs).busy * profiled.busy;
    const idle = idleIn(timeNs, busy_ns);
    const batch: Batch = {
      batch_size,
      wall,
      clean_ms,
      busy_ns,
      idle_ns: idle.idle,
      idle_share: idle.share,
      kernels: row['kernels'] ?? 0,
      launches: row['launches'] ?? 0,
    };
    batchesByKind.set(row.kind, [...(batchesByKind.get(row.kind) ?? []), batch]);
  }
  for (const [kind, sizes] of batchesByKind) if (sizes.length < 2) batchesByKind.delete(kind);
  return batchesByKind;
}
