import { sendAndRecv } from '../../model/collectives.js';
import type { JobTransfer } from '../../model/documents/collectives.js';
import { type Figure, figure } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';

interface TransferRow extends Omit<JobTransfer, 'bandwidth' | 'of_link' | 'kv_cache'> {
  sender_kind: string | null;
  receiver_kind: string | null;
}

/**
 * Transfers from each rank of a job to another, by total time. In disaggregated serving a rank that only computes
 * prefills sends the KV cache to one that decodes.
 * @param link between the ranks, B/s
 */
export async function transfersOf(
  database: SessionDatabase,
  execution: string,
  link: Figure,
): Promise<JobTransfer[]> {
  const rows = await database.query<TransferRow>(
    `WITH kinds AS (
       SELECT rank, CASE WHEN count_if(kind = 'prefill') = count(*) THEN 'prefill' WHEN bool_or(kind IN ('decode', 'mixed')) THEN 'decode' END AS kind
       FROM stages WHERE execution_id = '${execution}' AND kind IN ('prefill', 'decode', 'mixed') GROUP BY rank),
     ends AS (
       SELECT c.communicator, k.bytes, k.shortest_ns, c.dur_ns - k.shortest_ns AS waiting_ns, c.rank, c.peer, c.received_bytes = 0 AS sends
       FROM collectives c JOIN collective_calls k ON k.communicator = c.communicator AND k.operation = c.operation AND k.sequence = c.sequence
       WHERE c.operation = '${sendAndRecv}' AND c.peer IS NOT NULL)
     SELECT any_value(rank) FILTER (sends) AS sender, any_value(peer) FILTER (sends) AS receiver, count_if(sends) AS transfers, coalesce(sum(bytes) FILTER (sends), 0)::BIGINT AS bytes,
       sum(shortest_ns) FILTER (sends) / 1e6 AS wire_ms, sum(waiting_ns) FILTER (sends) / 1e6 AS sender_waits_ms, sum(waiting_ns) FILTER (NOT sends) / 1e6 AS receiver_waits_ms,
       (SELECT kind FROM kinds WHERE rank = any_value(e.rank) FILTER (e.sends)) AS sender_kind, (SELECT kind FROM kinds WHERE rank = any_value(e.peer) FILTER (e.sends)) AS receiver_kind
     FROM ends e GROUP BY communicator HAVING count_if(sends) > 0 ORDER BY wire_ms DESC, sender, receiver`,
  );
  return rows.map(({ sender_kind, receiver_kind, ...row }) => {
    const bandwidth = figure(row.bytes / (row.wire_ms / 1e3), 'B/s', 'bytes over the time of both ends', {
      n: row.transfers,
    });
    return {
      ...row,
      bandwidth,
      of_link:
        link.value === null
          ? link
          : figure(bandwidth.value / link.value, 'ratio', `bandwidth over ${link.source}`),
      kv_cache: sender_kind === 'prefill' && receiver_kind === 'decode',
    };
  });
}
