/** Operation of a send together with the receive of the other rank. */
export const sendAndRecv = 'Send and Recv';

/** In a ring's all-reduce each link carries 2(n − 1)/n of the data (nccl-tests, doc/PERFORMANCE.md). */
export const busFactor = (ranks: number): number => (2 * (ranks - 1)) / ranks;

/**
 * What nccl-tests (doc/PERFORMANCE.md) divides by the time: `algorithm` bytes for the algorithm bandwidth, `bus` bytes for
 * the bus bandwidth, which a link's rate bounds whatever the operation and the number of ranks.
 * @param bytes count × size of the type as the call has it: of AllGather and ReduceScatter the part of one rank, of AllToAll what
 * a rank sends to all
 * @returns null for operations it does not define
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
 * SQL of a workbench's table that importers fill with the calls that their captures record, before each has its rank and its kernel's
 * time. `on_host`: times are of the call, the kernels must be found.
 */
export const recordedCallsSql = `CREATE TABLE IF NOT EXISTS recorded_calls (
  capture_id VARCHAR, pid BIGINT, on_host BOOLEAN, start_ns BIGINT, dur_ns BIGINT, device INTEGER, communicator VARCHAR, communicator_name VARCHAR,
  ranks INTEGER, operation VARCHAR, sequence BIGINT, peer INTEGER, bytes BIGINT, received_bytes BIGINT)`;
