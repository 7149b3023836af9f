/** Operation of a send merged with the receive of the other rank. */
export const sendAndRecv = 'Send and Recv';

/** In a ring's all-reduce each link carries 2(n − 1)/n of the data (nccl-tests, doc/PERFORMANCE.md). */
export const busFactor = (ranks: number): number => (2 * (ranks - 1)) / ranks;

/**
 * The bytes that nccl-tests (doc/PERFORMANCE.md) divides by the time: `algorithm` for the algorithm bandwidth, `bus` for the
 * bus bandwidth, which is limited by the link's rate for any operation and number of ranks.
 * @param bytes count × size of the type as in the call: for AllGather and ReduceScatter the part of one rank, for AllToAll what
 * a rank sends to all
 * @returns null for operations without a definition there
 */
export function collectiveTraffic(
  operation: string,
  bytes: number,
  ranks: number,
): { algorithm: number; bus: number } | null {
  const once = { algorithm: bytes, bus: bytes };
  const parts = { algorithm: bytes * ranks, bus: bytes * (ranks - 1) };
  switch (operation) {
    case 'AllReduce':
      return { algorithm: bytes, bus: bytes * busFactor(ranks) };
    case 'AllGather':
    case 'ReduceScatter':
      return parts;
    case 'AllToAll':
      return { algorithm: bytes, bus: (bytes * (ranks - 1)) / ranks };
    case 'Broadcast':
    case 'Reduce':
    case 'Send':
    case 'Recv':
    case sendAndRecv:
      return once;
    default:
      return null;
  }
}

/**
 * SQL of a workbench table that importers fill with recorded calls, before each has its rank and its kernel's time. `on_host`: the times
 * are those of the host call; its kernels are not known yet. `repeats` and `device_place` are of calls in a group on the host: the number of
 * equal calls, and for a send or receive of a thread that drives several devices the place of its device among them.
 */
export const recordedCallsSql = `CREATE TABLE IF NOT EXISTS recorded_calls (
  capture_id VARCHAR, pid BIGINT, tid BIGINT, on_host BOOLEAN, start_ns BIGINT, dur_ns BIGINT, device INTEGER, communicator VARCHAR, communicator_name VARCHAR,
  ranks INTEGER, operation VARCHAR, sequence BIGINT, peer INTEGER, bytes BIGINT, received_bytes BIGINT, repeats INTEGER DEFAULT 1, device_place INTEGER)`;
