import { shortKernelNs } from './short-kernels.js';

/**
 * Kernel totals by step and kernel properties: one pass over millions of kernels for all queries.
 */
export const kernelCellsSql = `SELECT phase, step_kind, name, short_name, class, tile, dtype, context, stream, attributed_by, graph_node IS NOT NULL AS in_graph, api_start_ns IS NULL AS orphan,
            count(*) AS kernels, sum(dur_ns)::BIGINT AS dur_ns, sum(exclusive_ns)::BIGINT AS exclusive_ns, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns,
            count_if(dur_ns < ${shortKernelNs})::BIGINT AS short, coalesce(sum(dur_ns) FILTER (dur_ns < ${shortKernelNs}), 0)::BIGINT AS short_ns
     FROM phase_kernels GROUP BY ALL`;
