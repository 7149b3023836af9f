import type { SessionDatabase } from '../../session/query.js';

/** Collectives of one operation and size. */
export interface CollectiveKind {
  operation: string;
  bytes: number;
  /** On all communicators. */
  calls: number;
  /** Sum over ranks, ns. */
  total_ns: number;
}

/** Kinds of collectives, those with the longest sum of times first; what one rank sends to another is none. */
export const collectiveKinds = (database: SessionDatabase): Promise<CollectiveKind[]> =>
  database.query<CollectiveKind>(
    `SELECT operation, bytes, count(DISTINCT (communicator, sequence)) AS calls, sum(dur_ns)::DOUBLE AS total_ns
     FROM collectives WHERE peer IS NULL AND dur_ns IS NOT NULL AND bytes IS NOT NULL AND rank IS NOT NULL
     GROUP BY 1, 2 ORDER BY total_ns DESC, 1, 2`,
  );

/** What a rank waited in neighboring calls: beyond the shortest time of the same call on any rank of its communicator. */
export interface RankWaits {
  rank: number;
  /** Column of calls, from 0: the same calls on all ranks. */
  bin: number;
  /** Calls are counted from 1 in each communicator's order. */
  first: number;
  last: number;
  waiting_ms: number;
  /** The call of these with the longest wait. */
  longest_ms: number;
  execution: string;
  /** Null where the source has none. */
  start_ns: number | null;
  dur_ns: number;
}

/** Cells of a picture, and columns of calls at most: neighbors of longer captures are one. */
const cellsShown = 20_000;
const columnsShown = 200;

/** @returns by rank, then in the order of calls */
export const callsByRank = (
  database: SessionDatabase,
  { operation, bytes }: Pick<CollectiveKind, 'operation' | 'bytes'>,
): Promise<RankWaits[]> =>
  database.query<RankWaits>(
    `WITH calls AS (
       SELECT execution_id, rank, start_ns, dur_ns, dur_ns - min(dur_ns) OVER (PARTITION BY communicator, sequence) AS waiting_ns,
              (dense_rank() OVER (PARTITION BY communicator ORDER BY sequence))::INTEGER AS nth
       FROM collectives WHERE operation = $1 AND bytes = $2 AND peer IS NULL AND dur_ns IS NOT NULL AND rank IS NOT NULL),
     size AS (SELECT max(nth) AS calls, greatest(20, least(${columnsShown}, ${cellsShown} // count(DISTINCT rank))) AS columns FROM calls)
     SELECT rank, (nth - 1) * columns // greatest(columns, calls) AS bin, min(nth) AS first, max(nth) AS last, avg(waiting_ns) / 1e6 AS waiting_ms, max(waiting_ns) / 1e6 AS longest_ms,
            arg_max(execution_id, waiting_ns) AS execution, arg_max(start_ns, waiting_ns) AS start_ns, arg_max(dur_ns, waiting_ns) AS dur_ns
     FROM calls, size GROUP BY rank, bin ORDER BY rank, bin`,
    [operation, bytes],
  );
