import { sendAndRecv } from '../../model/collectives.js';
import type { JobTransfer } from '../../model/documents/collectives.js';
import { type Figure, figure } from '../../model/figure.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { callKey } from '../trace/collective-tables.js';
import { captureList, isSameCall } from '../trace/collectives.js';
import { callLossesSql } from './job.js';

type TransferRow = Omit<JobTransfer, 'bandwidth' | 'link_share'>;

/**
 * SQL of the pairs of ranks with transfers. In disaggregated serving a rank that only computes prefills sends the KV
 * cache to one that decodes.
 * @param where condition on the rows of `stages` and `collectives`
 */
export const pairsSql = (where: string): string =>
  `WITH kinds AS (
     SELECT rank, CASE WHEN count_if(kind = 'prefill') = count(*) THEN 'prefill' WHEN bool_or(kind IN ('decode', 'mixed')) THEN 'decode' END AS kind
     FROM stages WHERE ${where} AND kind IN ('prefill', 'decode', 'mixed') GROUP BY rank)
   SELECT p.*, coalesce(s.kind = 'prefill' AND r.kind = 'decode', false) AS kv_cache
   FROM (SELECT DISTINCT communicator, rank AS sender, peer AS receiver FROM collectives WHERE ${where} AND operation = '${sendAndRecv}' AND peer IS NOT NULL AND received_bytes = 0) p
   LEFT JOIN kinds s ON s.rank = sender LEFT JOIN kinds r ON r.rank = receiver`;

/**
 * Transfers from each rank of a job to another, by total time.
 * @param link between the ranks, B/s
 */
export async function readTransfers(
  database: SessionDatabase,
  execution: string,
  link: Figure,
): Promise<JobTransfer[]> {
  const rows = await database.query<TransferRow>(
    `SELECT sender, receiver, count(*) AS transfers, sum(bytes)::BIGINT AS bytes, sum(shortest_ns) / 1e6 AS wire_ms,
       sum(sender_ns - shortest_ns) / 1e6 AS sender_waits_ms, sum(receiver_ns - shortest_ns) / 1e6 AS receiver_waits_ms, any_value(kv_cache) AS kv_cache
     FROM (${pairsSql(`execution_id = '${execution}'`)}) JOIN (SELECT * FROM collective_calls WHERE execution_id = '${execution}') k USING (communicator)
     JOIN (SELECT ${callKey}, max(dur_ns) FILTER (received_bytes = 0) AS sender_ns, max(dur_ns) FILTER (received_bytes > 0) AS receiver_ns
       FROM collective_rows GROUP BY ALL) c ON ${isSameCall('c', 'k')}
     GROUP BY sender, receiver ORDER BY wire_ms DESC, sender, receiver`,
  );
  return rows.map((row) => {
    const bandwidth = figure(row.bytes / (row.wire_ms / 1e3), 'B/s', 'bytes / time of the shorter end', {
      n: row.transfers,
    });
    return {
      ...row,
      bandwidth,
      link_share:
        link.value === null
          ? link
          : figure(bandwidth.value / link.value, 'ratio', `bandwidth over ${link.source}`),
    };
  });
}

/** KV caches that a rank sends or receives in a kind of stage, mean per instance. */
export interface KvTransfer extends Record<string, number> {
  rank: number;
  sender: number;
  receiver: number;
  transfers: number;
  bytes: number;
  /** Time of the shorter end, ms. */
  wire_ms: number;
  /** Part of the rank's own end without compute at the same time, ms, including waiting_ms. */
  exposed_ms: number;
  /** Exposed time until the other rank is ready, ms. */
  waiting_ms: number;
}

/** SQL of KvTransfer, the largest exposed time first. */
export const kvTransfersSql = (captures: readonly string[], kind: PhaseKind, instances: number): string =>
  `SELECT l.rank, sender, receiver, count(*) / ${instances} AS transfers, coalesce(sum(k.bytes), 0)::DOUBLE / ${instances} AS bytes,
     sum(k.shortest_ns) / 1e6 / ${instances} AS wire_ms, sum(l.exposed_ns) / 1e6 / ${instances} AS exposed_ms, sum(l.skew_ns) / 1e6 / ${instances} AS waiting_ms
   FROM (${callLossesSql(captures, kind)}) l JOIN (${pairsSql(`capture_id IN (${captureList(captures)})`)}) p ON p.communicator = l.communicator AND kv_cache
   JOIN collective_calls k ON ${isSameCall('k', 'l')}
   GROUP BY l.rank, sender, receiver ORDER BY exposed_ms DESC, l.rank, sender, receiver`;
