import type { TraceMemory } from '../../model/documents/trace-memory.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { literal, type TraceScope } from './scope.js';

const maxPoints = 1000;

interface AllocatorSource {
  capture_id: string;
  device: number | null;
  source: string;
}

/**
 * Allocator totals on the analyzed device: from the attributed capture, else from another capture with them, preferably of
 * the same execution. Null without any. Each point keeps the highest value of its span, so that peaks remain.
 */
export async function readMemory(scope: TraceScope): Promise<TraceMemory | null> {
  const { database, source } = scope;
  await scope.need('windows');
  const { attribution, focus } = source;
  const rank = focus.rank === null ? 'true' : `(rank IS NULL OR rank = ${focus.rank})`;
  const [allocator] = await database.query<AllocatorSource>(
    `SELECT capture_id, device, any_value(source) AS source FROM memory
     WHERE kind = 'allocated' AND device IS NOT DISTINCT FROM ${literal(focus.device)}::INTEGER AND ${rank}
     GROUP BY capture_id, device ORDER BY capture_id = ${literal(attribution.capture_id)} DESC, bool_or(execution_id = ${literal(attribution.execution_id)}) DESC, count(*) DESC, capture_id LIMIT 1`,
  );
  if (!allocator) return null;
  const rows = `(SELECT execution_id, kind, t_ns, bytes FROM memory WHERE capture_id = ${literal(allocator.capture_id)}
    AND device IS NOT DISTINCT FROM ${literal(allocator.device)}::INTEGER AND ${rank})`;
  const points = async (kind: 'allocated' | 'reserved') =>
    (
      await database.query<{ t_ns: number; bytes: number }>(
        `WITH span AS (SELECT min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM ${rows})
         SELECT arg_max(t_ns, bytes) AS t_ns, max(bytes) AS bytes FROM ${rows}, span WHERE kind = '${kind}'
         GROUP BY ((t_ns - low)::HUGEINT * ${maxPoints} // width) ORDER BY t_ns`,
      )
    ).map(({ t_ns, bytes }): [number, number] => [t_ns, bytes]);
  const [allocated, reserved] = [await points('allocated'), await points('reserved')];
  const peak = allocated.reduce((highest, point) => (point[1] > highest[1] ? point : highest));
  const [phase] = await database.query<{ kind: PhaseKind }>(
    `SELECT kind FROM windows WHERE start_ns <= $1 AND end_ns > $1 AND kind <> 'sampling'
       AND ${literal(attribution.capture_id)} = ${literal(allocator.capture_id)} ORDER BY end_ns - start_ns LIMIT 1`,
    [peak[0]],
  );
  const maxReserved =
    reserved.length === 0 ? null : reserved.reduce((high, [, bytes]) => Math.max(high, bytes), 0);
  return {
    ...allocator,
    allocated,
    reserved,
    peak: {
      t_ns: peak[0],
      allocated_bytes: peak[1],
      phase: phase && phase.kind !== 'outside' ? phase.kind : null,
    },
    max_reserved_bytes: maxReserved,
    unused_share: maxReserved ? (maxReserved - peak[1]) / maxReserved : null,
  };
}
