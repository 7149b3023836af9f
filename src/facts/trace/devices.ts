import { dtypes } from '../../model/dtype.js';
import { missing } from '../../model/figure.js';
import type { TraceDevice } from '../../model/documents/trace.js';
import type { ManifestData } from '../../model/manifest.js';
import { deviceOf } from '../device.js';
import { literal, type TraceScope } from './scope.js';

type Activity = Pick<
  TraceDevice,
  'rank' | 'device' | 'streams' | 'kernels' | 'copies' | 'kernel_ns' | 'copy_ns' | 'busy_ns' | 'span_ns'
>;

/** Each rank and device of the capture separately; they are never summed. */
export async function readDevices(
  { database, source }: TraceScope,
  { hardware, workload }: ManifestData,
): Promise<TraceDevice[]> {
  const { execution_id, capture_id } = source.attribution;
  const inCapture = `execution_id = ${literal(execution_id)} AND capture_id = ${literal(capture_id)}`;
  const rows = await database.query<Activity>(
    `SELECT rank, device, count(DISTINCT stream) AS streams, coalesce(sum(kernels), 0)::BIGINT AS kernels,
            coalesce(sum(copies), 0)::BIGINT AS copies, coalesce(sum(dur_ns) FILTER (kernels > 0), 0)::DOUBLE AS kernel_ns,
            coalesce(sum(dur_ns) FILTER (copies > 0), 0)::DOUBLE AS copy_ns, coalesce(sum(exclusive_ns), 0)::DOUBLE AS busy_ns,
            max(end_ns) - min(start_ns) AS span_ns
     FROM (SELECT rank, device, stream, kernels, dur_ns, exclusive_ns, start_ns, end_ns FROM kernel_streams WHERE ${inCapture}
           UNION ALL BY NAME
           SELECT rank, device, stream, count(*) AS copies, sum(dur_ns) AS dur_ns, sum(exclusive_ns) AS exclusive_ns,
                  min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns FROM copies WHERE ${inCapture} GROUP BY ALL)
     GROUP BY rank, device ORDER BY rank, device`,
  );
  const dtype = dtypes.find((candidate) => candidate === workload?.model?.dtype);
  return rows.map((row) => {
    const { name, smCount, bandwidth, peak } = deviceOf({ hardware, workload }, row.device);
    return {
      ...row,
      focus: row.rank === source.focus.rank && row.device === source.focus.device,
      name,
      sm_count: smCount,
      peak_bandwidth_bytes_per_s: bandwidth,
      peak_flops_per_s:
        name === null || dtype
          ? peak(dtype ?? 'float32')
          : missing('no_dtype', 'the session does not record the compute dtype'),
    };
  });
}
