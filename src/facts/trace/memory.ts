import type { TraceMemory } from '../../model/documents/trace-memory.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { literal, type TraceScope } from './scope.js';

const pointsShown = 1000;

interface Held {
  capture_id: string;
  device: number | null;
  source: string;
}

/**
 * Running totals of the framework's allocator on the device in focus: of the attributed capture, else of another one of
 * the session that recorded them, one of the same execution first. Null without any. Points keep the highest of their span, so that no peak is lost.
 */
export async function memory(scope: TraceScope): Promise<TraceMemory | null> {
  const { database, source } = scope;
  await scope.need('windows');
  const { attribution, focus } = source;
  const rank = focus.rank === null ? 'true' : `(rank IS NULL OR rank = ${focus.rank})`;
  const [held] = await database.query<Held>(
    `SELECT capture_id, device, any_value(source) AS source FROM memory
     WHERE kind = 'allocated' AND device IS NOT DISTINCT FROM ${literal(focus.device)}::INTEGER AND ${rank}
     GROUP BY capture_id, device ORDER BY capture_id = ${literal(attribution.capture_id)} DESC, bool_or(execution_id = ${literal(attribution.execution_id)}) DESC, count(*) DESC, capture_id LIMIT 1`,
  );
  if (!held) return null;
  const rows = `(SELECT execution_id, kind, t_ns, bytes FROM memory WHERE capture_id = ${literal(held.capture_id)}
    AND device IS NOT DISTINCT FROM ${literal(held.device)}::INTEGER AND ${rank})`;
  const points = async (kind: 'allocated' | 'reserved') =>
    (
      await database.query<{ t_ns: number; bytes: number }>(
        `WITH span AS (SELECT min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM ${rows})
         SELECT arg_max(t_ns, bytes) AS t_ns, max(bytes) AS bytes FROM ${rows}, span WHERE kind = '${kind}'
         GROUP BY ((t_ns - low)::HUGEINT * ${pointsShown} // width) ORDER BY t_ns`,
      )
    ).map(({ t_ns, bytes }): [number, number] => [t_ns, bytes]);
  const [allocated, reserved] = [await points('allocated'), await points('reserved')];
  const peak = allocated.reduce((most, one) => (one[1] > most[1] ? one : most));
  const [phase] = await database.query<{ kind: PhaseKind }>(
    `SELECT kind FROM windows WHERE start_ns <= $1 AND end_ns > $1 AND kind <> 'sampling'
       AND ${literal(attribution.capture_id)} = ${literal(held.capture_id)} ORDER BY end_ns - start_ns LIMIT 1`,
    [peak[0]],
  );
  const most = reserved.length === 0 ? null : reserved.reduce((high, [, bytes]) => Math.max(high, bytes), 0);
  return {
    ...held,
    allocated,
    reserved,
    peak: {
      t_ns: peak[0],
      allocated_bytes: peak[1],
      phase: phase && phase.kind !== 'outside' ? phase.kind : null,
    },
    max_reserved_bytes: most,
    unused_share: most ? (most - peak[1]) / most : null,
  };
}
