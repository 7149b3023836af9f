import type { SessionDatabase } from '../../session/query.js';

/**
 * Makes `kernel_streams`: kernels of every stream of every capture, rank and device summed, a few rows, which tell what
 * a session's timelines hold without another pass over its kernels. exclusive_ns is null where no kernel has one.
 */
export async function makeKernelStreams(database: SessionDatabase): Promise<void> {
  await database.once(
    'kernel_streams',
    '',
    `SELECT execution_id, capture_id, rank, device, stream, count(*) AS kernels, sum(dur_ns) AS dur_ns,
            sum(exclusive_ns) AS exclusive_ns, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns
     FROM kernels GROUP BY ALL`,
  );
}
