import { shortKernelNs } from './short-kernels.js';
import { placeKey, scopeKey, type TraceScope } from './scope.js';

/**
 * Makes `kernel_cells`: kernels of the focus summed over what they have in common, some hundred rows, which every question
 * without a median is answered from; one pass over millions of kernels instead of ten. step_kind is the kind of the step's
 * window, null outside; times are sums, exclusive_ns null where no kernel of the cell has one. Needs `windows`.
 */
export async function makeKernelCells({ database, source }: TraceScope): Promise<void> {
  await database.once(
    'kernel_cells',
    scopeKey(source),
    `SELECT phase, step_kind, name, short_name, class, tile, dtype, context, stream, attributed_by, graph_node IS NOT NULL AS in_graph, api_start_ns IS NULL AS orphan,
            count(*) AS kernels, sum(dur_ns) AS dur_ns, sum(exclusive_ns) AS exclusive_ns, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns,
            count_if(dur_ns < ${shortKernelNs}) AS short, coalesce(sum(dur_ns) FILTER (dur_ns < ${shortKernelNs}), 0) AS short_ns
     FROM own_kernels k JOIN (
       SELECT p.stage_id, phase, w.kind AS step_kind FROM place_of p LEFT JOIN windows w ON w.stage_id = p.step_id AND w.kind <> 'sampling') p ON p.stage_id = ${placeKey('k')}
     GROUP BY ALL`,
  );
}
