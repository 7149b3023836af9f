import type { SessionDatabase } from '../../session/query.js';

/**
 * Makes `kernel_streams`: kernel sums by capture, rank, device and stream. These few rows answer which timelines a
 * session has without reading its kernels again. exclusive_ns is null if no kernel has one.
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
