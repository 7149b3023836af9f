import { sendAndRecv } from '../../model/collectives.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { byNumber, callKey } from '../trace/collective-tables.js';
import { captureList, isSameCall, joinSteps } from '../trace/collectives.js';

/** One communicator's calls of an operation in a kind of stage of a job (import --ranks). */
export interface LinkUse extends Record<string, string | number | null> {
  communicator: string;
  name: string | null;
  operation: string;
  bytes: number | null;
  ranks: number;
  /** Below `ranks` if some were not imported: waiting for them counts as exchange. */
  recorded_ranks: number;
  /** "0, 1, 2, 3" */
  members: string;
  calls: number;
  /** Median of the shortest time over ranks, µs. */
  wire_us: number;
  /** Smallest `wire_us` of the other communicators with the same operation, bytes and ranks; null without one. */
  other_us: number | null;
  /** Exposed time above `other_us`, ms, mean per instance of the kind. */
  lost_ms: number;
}

/** A communicator is slow from this multiple of `other_us` on; smaller differences are noise. */
const slowFactor = 1.5;
/** Minimum calls of a communicator for its median to be used. */
const minCalls = 8;

const inKindCte = (captures: readonly string[], kind: PhaseKind): string =>
  `in_kind AS (
     SELECT c.execution_id, c.communicator, c.operation, c.sequence, sum(c.exposed_ns) / greatest(sum(c.dur_ns), 1) AS exposed_share
     FROM collective_rows c ${joinSteps('c', kind)} WHERE c.capture_id IN (${captureList(captures)}) GROUP BY ALL)`;

/** SQL of LinkUse, the largest loss first. */
export const linksSql = (
  captures: readonly string[],
  kind: PhaseKind,
  instances: number,
): string => `WITH ${inKindCte(captures, kind)},
   uses AS (
     SELECT communicator, operation, any_value(ranks) AS ranks, min(recorded_ranks) AS recorded_ranks, median(bytes)::BIGINT AS bytes, count(*) AS calls, median(shortest_ns) / 1e3 AS wire_us,
       avg(exposed_share) AS exposed_share
     FROM collective_calls JOIN in_kind USING (${callKey}) GROUP BY communicator, operation),
   members AS (
     SELECT communicator, any_value(communicator_name) AS name, string_agg(DISTINCT rank::VARCHAR, ', ' ORDER BY lpad(rank::VARCHAR, 6, '0')) AS members
     FROM (SELECT communicator, communicator_name, rank FROM collectives WHERE capture_id IN (${captureList(captures)}) ORDER BY rank) GROUP BY communicator),
   compared AS (
     SELECT u.*, (SELECT min(o.wire_us) FROM uses o WHERE o.communicator <> u.communicator AND o.operation = u.operation AND o.ranks = u.ranks
         AND o.bytes IS NOT DISTINCT FROM u.bytes AND o.calls >= ${minCalls}) AS other_us
     FROM uses u)
   SELECT communicator, name, operation, bytes, ranks, recorded_ranks, members, calls, wire_us, other_us,
     coalesce(greatest(wire_us - other_us, 0), 0) * calls * exposed_share / 1e3 / ${instances} AS lost_ms
   FROM compared JOIN members USING (communicator) ORDER BY lost_ms DESC, ${byNumber('communicator')}, operation`;

/** The communicator with a slower exchange than its equals, if any. */
export async function readSlowLink(
  database: SessionDatabase,
  captures: readonly string[],
  { kind, instances }: { kind: PhaseKind; instances: number },
): Promise<LinkUse | null> {
  const [slowest] = await database.query<LinkUse>(linksSql(captures, kind, instances));
  if (!slowest || slowest.other_us === null || slowest.calls < minCalls) return null;
  return slowest.wire_us >= slowFactor * slowest.other_us ? slowest : null;
}

/** Imbalance of what the ranks of a communicator receive in all-to-all calls, in a kind of stage of a job. */
export interface ExpertLoad extends Record<string, string | number | null> {
  communicator: string;
  name: string | null;
  ranks: number;
  /** Calls in which ranks receive different amounts. */
  uneven: number;
  /** Mean of largest / mean over these calls. */
  imbalance: number;
  /** The rank that receives the most in most calls, and the number of these calls. */
  rank: number;
  rank_calls: number;
  /** Exchange time of the largest part beyond the mean part, ms, mean per instance. */
  wire_ms: number;
  /** Time that other ranks wait in all-to-all calls for that rank, beyond balanced work, ms, mean per instance. */
  waiting_ms: number;
}

/** Minimum ratio of received bytes to the mean; below it ranks count as balanced. */
const minImbalance = 1.1;

/** SQL of ExpertLoad, the largest loss first. */
export const expertsSql = (
  captures: readonly string[],
  kind: PhaseKind,
  instances: number,
): string => `WITH ${inKindCte(captures, kind)},
   calls AS (
     SELECT ${callKey}, any_value(communicator_name) AS name, max(received_bytes) / nullif(avg(received_bytes), 0) AS imbalance, arg_max(rank, received_bytes) AS hottest
     FROM collective_rows WHERE operation = 'AllToAll' AND received_bytes IS NOT NULL GROUP BY ALL),
   exposed_calls AS (
     SELECT c.*, k.shortest_ns, k.longest_ns, k.last_rank, k.ranks, exposed_share
     FROM calls c JOIN collective_calls k USING (${callKey}) JOIN in_kind USING (${callKey})),
   hottest_rank AS (
     SELECT communicator, hottest AS rank, count(*) AS rank_calls FROM exposed_calls WHERE imbalance >= ${minImbalance}
     GROUP BY communicator, hottest QUALIFY row_number() OVER (PARTITION BY communicator ORDER BY count(*) DESC, hottest) = 1)
   SELECT communicator, any_value(name) AS name, max(ranks) AS ranks, count_if(imbalance >= ${minImbalance}) AS uneven, avg(imbalance) FILTER (imbalance >= ${minImbalance}) AS imbalance,
     any_value(rank) AS rank, any_value(rank_calls) AS rank_calls,
     coalesce(sum(exposed_share * shortest_ns * (1 - 1 / imbalance)) FILTER (imbalance >= ${minImbalance}), 0) / 1e6 / ${instances} AS wire_ms,
     coalesce(sum(exposed_share * (longest_ns - shortest_ns) * (1 - 1 / ranks)) FILTER (last_rank = rank), 0) / 1e6 / ${instances} AS waiting_ms
   FROM exposed_calls JOIN hottest_rank USING (communicator) GROUP BY communicator ORDER BY wire_ms + waiting_ms DESC, communicator`;

/** Minimum share of uneven calls in which the same rank receives the most. */
const minHottestShare = 0.6;

/** The communicator that loses the most to uneven work, if one rank receives the most in most of its uneven calls. */
export async function readHotExpert(
  database: SessionDatabase,
  captures: readonly string[],
  { kind, instances }: { kind: PhaseKind; instances: number },
): Promise<ExpertLoad | null> {
  const [largest] = await database.query<ExpertLoad>(expertsSql(captures, kind, instances));
  if (!largest || largest.uneven < minCalls || largest.rank_calls < minHottestShare * largest.uneven)
    return null;
  return largest;
}

/**
 * SQL of the exposed time that each call costs each rank of a job, ns: `skew_ns` waiting for a late rank,
 * `imbalance_ns` waiting for the rank with the busiest experts, and the exchange of its larger part. In calls that some
 * rank did not record, waiting is unknown and counts as 0.
 */
export const callLossesSql = (captures: readonly string[], kind: PhaseKind): string => `WITH sizes AS (
     SELECT ${callKey}, max(received_bytes) / nullif(avg(received_bytes), 0) AS imbalance, arg_max(rank, received_bytes) AS hottest
     FROM collective_rows WHERE operation = 'AllToAll' AND received_bytes IS NOT NULL AND capture_id IN (${captureList(captures)}) GROUP BY ALL),
   hottest_rank AS (
     SELECT communicator, hottest AS hot_rank FROM sizes WHERE imbalance >= ${minImbalance}
     GROUP BY communicator, hottest QUALIFY row_number() OVER (PARTITION BY communicator ORDER BY count(*) DESC, hottest) = 1)
   SELECT rank, ${callKey}, dur_ns, shortest_ns, exposed_ns,
     CASE WHEN uneven THEN 0 ELSE waiting END AS skew_ns,
     CASE WHEN uneven THEN waiting ELSE 0 END + CASE WHEN imbalance >= ${minImbalance} THEN (exposed_ns - waiting) * (1 - 1 / imbalance) ELSE 0 END AS imbalance_ns
   FROM (
     SELECT c.*, k.shortest_ns, coalesce(c.exposed_ns * (1 - k.shortest_ns / greatest(c.dur_ns, 1)), 0) AS waiting,
       coalesce(c.operation = 'AllToAll' AND k.last_rank = h.hot_rank, false) AS uneven, s.imbalance
     FROM collective_rows c ${joinSteps('c', kind)} LEFT JOIN collective_calls k ON ${isSameCall('k', 'c')}
     LEFT JOIN sizes s ON ${isSameCall('s', 'c')}
     LEFT JOIN hottest_rank h ON h.communicator = c.communicator
     WHERE c.capture_id IN (${captureList(captures)}))`;

/** Time that a pipeline rank waits for other stages in sends and receives, ms, mean per instance of the kind. */
export interface StageWaits extends Record<string, string | number | null> {
  rank: number;
  waiting_ms: number;
  /**
   * Transfers from or to one rank per instance, or if each micro-batch is an instance, per transfer of the direction with the fewest: the
   * last stage sends back once for all micro-batches.
   */
  micro_batches: number;
}

/** SQL of StageWaits, the rank that waits least first, over transfers with both ends in the kind of stage. */
export const pipelineSql = (
  captures: readonly string[],
  kind: PhaseKind,
  instances: number,
): string => `WITH ends AS (
     SELECT * FROM (${callLossesSql(captures, kind)}) WHERE operation = '${sendAndRecv}' AND shortest_ns IS NOT NULL),
   two_ended AS (SELECT communicator FROM ends GROUP BY communicator HAVING count(DISTINCT rank) = 2)
   SELECT rank, sum(skew_ns) / 1e6 / ${instances} AS waiting_ms, greatest(max(n) / ${instances}, max(n) / min(n)) AS micro_batches
   FROM (SELECT rank, communicator, sum(skew_ns) AS skew_ns, count(*) AS n FROM ends SEMI JOIN two_ended USING (communicator) GROUP BY ALL)
   GROUP BY rank ORDER BY waiting_ms, rank`;

/** The bubble of a pipeline: the wait of the rank that waits least. */
export interface Pipeline {
  ranks: number;
  micro_batches: number;
  bubble_ms: number;
}

/** Null if a rank of the captures sends and receives nothing in this kind of stage. */
export async function readPipeline(
  database: SessionDatabase,
  captures: readonly string[],
  { kind, instances, ranks }: { kind: PhaseKind; instances: number; ranks: number },
): Promise<Pipeline | null> {
  const waits = await database.query<StageWaits>(pipelineSql(captures, kind, instances));
  const [shortest] = waits;
  if (!shortest || waits.length < ranks) return null;
  const micro_batches = Math.round(Math.max(...waits.map((wait) => wait.micro_batches)));
  return { ranks: waits.length, micro_batches, bubble_ms: shortest.waiting_ms };
}
