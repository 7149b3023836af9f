import type { SessionDatabase } from '../../session/query.js';
import { makeCollectives } from '../trace/collective-tables.js';
import { isSameCall } from '../trace/collectives.js';

/** Collectives of one operation and size in an execution. */
export interface CollectiveKind {
  execution_id: string;
  operation: string;
  /** Null for kernels known only by name. */
  bytes: number | null;
  /** Number of calls on all communicators. */
  calls: number;
  communicators: number;
  /** Sum over ranks, ns. */
  total_ns: number;
}

/** Kinds of collectives that all ranks finish together, by total time. */
export async function readCollectiveKinds(database: SessionDatabase): Promise<CollectiveKind[]> {
  await makeCollectives(database);
  return database.query<CollectiveKind>(
    `SELECT execution_id, operation, bytes, count(*) AS calls, count(DISTINCT communicator) AS communicators, sum(time_ns)::DOUBLE AS total_ns
     FROM collective_calls GROUP BY 1, 2, 3 ORDER BY total_ns DESC, 1, 2, 3`,
  );
}

/** Waits of a rank in neighboring calls: time beyond the shortest of the same call on any rank of its communicator. */
export interface RankWaits {
  rank: number;
  /** Column of calls, from 0; a column has the same calls on all ranks. */
  bin: number;
  /** Call numbers count from 1 within each communicator. */
  first: number;
  last: number;
  waiting_ms: number;
  /** The longest wait among these calls. */
  longest_ms: number;
  execution: string;
  /** Null if the source has no times. */
  start_ns: number | null;
  dur_ns: number;
}

/** Maximum cells of the picture, and maximum columns of calls. Longer captures merge neighboring calls. */
const maxCells = 8192;
const maxColumns = 200;

/** @returns by rank, then in call order */
export async function readCallsByRank(
  database: SessionDatabase,
  { execution_id: execution, operation, bytes }: Pick<CollectiveKind, 'execution_id' | 'operation' | 'bytes'>,
): Promise<RankWaits[]> {
  await makeCollectives(database);
  return database.query<RankWaits>(
    `WITH calls AS (
       SELECT c.execution_id, c.rank, c.start_ns, c.dur_ns, c.dur_ns - k.shortest_ns AS waiting_ns,
              (dense_rank() OVER (PARTITION BY c.communicator ORDER BY c.sequence))::INTEGER AS nth
       FROM collective_rows c JOIN collective_calls k ON ${isSameCall('k', 'c')}
       WHERE k.operation = $1 AND k.bytes IS NOT DISTINCT FROM $2::BIGINT AND k.execution_id = $3),
     size AS (SELECT max(nth) AS calls, greatest(20, least(${maxColumns}, ${maxCells} // count(DISTINCT rank))) AS columns FROM calls)
     SELECT rank, (nth - 1) * columns // greatest(columns, calls) AS bin, min(nth) AS first, max(nth) AS last, avg(waiting_ns) / 1e6 AS waiting_ms, max(waiting_ns) / 1e6 AS longest_ms,
            arg_max(execution_id, waiting_ns) AS execution, arg_max(start_ns, waiting_ns) AS start_ns, arg_max(dur_ns, waiting_ns) AS dur_ns
     FROM calls, size GROUP BY rank, bin ORDER BY rank, bin`,
    [operation, bytes, execution],
  );
}
