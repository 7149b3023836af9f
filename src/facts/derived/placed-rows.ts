import { gapParts } from '../../model/bars.js';
import type { TraceSource } from '../../model/documents/trace-source.js';
import type { SessionDatabase } from '../../session/query.js';
import type { Session } from '../../session/open.js';
import { literal, scopeKey } from '../trace/scope.js';
import { stepPhase } from '../trace/step-places.js';
import { type Timeline, timelinesOf, traceScope } from './scope.js';

/** Tables of placed rows, each with the recorded columns that it has. */
const placedColumns = {
  kernels:
    'execution_id, capture_id, host, rank, pid, device, stream, class, short_name, name, start_ns, dur_ns',
  copies: 'execution_id, capture_id, host, rank, pid, device, stream, kind, bytes, start_ns, dur_ns',
  gaps: `execution_id, capture_id, rank, device, ${gapParts.map((part) => `${part}_ns`).join(', ')}`,
  ops: 'execution_id, capture_id, rank, tid, class, dur_ns, self_dur_ns',
} as const;
type PlacedTable = keyof typeof placedColumns;

/**
 * Creates the temporary views `placed_kernels`, `placed_copies`, `placed_gaps` and `placed_ops`: the rows of all executions, captures,
 * ranks and devices, each once, with the kind of its step as `place`. Rows of a timeline without kernels and operators are `outside`.
 */
export async function makePlacedRows(
  session: Pick<Session, 'manifest' | 'connect'>,
  database: SessionDatabase,
): Promise<void> {
  const selects: Record<PlacedTable, string[]> = { kernels: [], copies: [], gaps: [], ops: [] };
  const timelines = await timelinesOf(database);
  const hostRows = hostRowsOnce();
  for (const [index, timeline] of timelines.entries()) {
    const connection = await session.connect();
    try {
      const { source } = await traceScope(connection, session.manifest, timeline);
      for (const [table, columns] of Object.entries(placedColumns)) {
        const name = `placed_${table}_${index}`;
        const rows = table === 'ops' ? hostRows(source) : 'true';
        const select = `SELECT ${columns}, ${stepPhase} AS place FROM phase_${table} WHERE ${rows}`;
        await connection.once(name, scopeKey(source), select);
        await database.once(name, scopeKey(source), select);
        selects[table as PlacedTable].push(`FROM ${name}`);
      }
    } finally {
      await connection.close();
    }
  }
  for (const [table, columns] of Object.entries(placedColumns)) {
    const others = `SELECT ${columns}, 'outside' AS place FROM ${table} r WHERE NOT (${isIn(timelines, table !== 'ops')})`;
    await database.query(
      `CREATE OR REPLACE TEMP VIEW placed_${table} AS ${[...selects[table as PlacedTable], others].join(' UNION ALL ')}`,
    );
  }
}

/** SQL of the operators that a timeline adds to those before it: devices of one process share the rows of the host. */
function hostRowsOnce(): (source: TraceSource) => string {
  const threadsLeft = new Map<string, readonly number[]>();
  return ({ attribution, focus }) => {
    const key = `${attribution.capture_id} ${focus.process_rank ?? focus.rank}`;
    const left = threadsLeft.get(key);
    const others = focus.other_threads ?? [];
    threadsLeft.set(key, left === undefined ? others : left.filter((thread) => others.includes(thread)));
    if (left === undefined) return 'true';
    return left.length === 0 ? 'false' : `tid IN (${left.join(', ')})`;
  };
}

const isIn = (timelines: readonly Timeline[], hasDevice: boolean): string =>
  timelines
    .map(
      ({ capture, rank, device }) =>
        `capture_id = ${literal(capture)} AND rank IS NOT DISTINCT FROM ${literal(rank)}${hasDevice ? ` AND device IS NOT DISTINCT FROM ${literal(device)}` : ''}`,
    )
    .join(' OR ') || 'false';
