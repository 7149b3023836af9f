import { gpuPeakBandwidth, gpuPeakFlops, gpuSheet } from '../../hardware/gpu-peaks.js';
import { dtypes } from '../../model/dtype.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { TraceDevice } from '../../model/documents/trace.js';
import type { ManifestData } from '../../model/manifest.js';
import { literal, type TraceScope } from './scope.js';

type Activity = Pick<
  TraceDevice,
  'rank' | 'device' | 'streams' | 'kernels' | 'copies' | 'kernel_ns' | 'copy_ns' | 'busy_ns' | 'span_ns'
>;

/** Every rank and device of the capture, each for itself: they are never added up. */
export async function devices(
  { database, source }: TraceScope,
  { hardware, workload }: ManifestData,
): Promise<TraceDevice[]> {
  const { execution_id, capture_id } = source.attribution;
  const ours = `execution_id = ${literal(execution_id)} AND capture_id = ${literal(capture_id)}`;
  const rows = await database.query<Activity>(
    `SELECT rank, device, count(DISTINCT stream) AS streams, sum(is_kernel)::BIGINT AS kernels, (count(*) - sum(is_kernel))::BIGINT AS copies,
            coalesce(sum(dur_ns) FILTER (is_kernel = 1), 0)::DOUBLE AS kernel_ns,
            coalesce(sum(dur_ns) FILTER (is_kernel = 0), 0)::DOUBLE AS copy_ns,
            coalesce(sum(exclusive_ns), 0)::DOUBLE AS busy_ns, max(start_ns + dur_ns) - min(start_ns) AS span_ns
     FROM (SELECT rank, device, stream, start_ns, dur_ns, exclusive_ns, 1 AS is_kernel FROM kernels WHERE ${ours}
           UNION ALL SELECT rank, device, stream, start_ns, dur_ns, exclusive_ns, 0 FROM copies WHERE ${ours})
     GROUP BY rank, device ORDER BY rank, device`,
  );
  const dtype = dtypes.find((one) => one === workload?.model?.dtype);
  return rows.map((row) => {
    const name = factOf(hardware, row.device, 'name');
    const gpu = typeof name === 'string' ? name : null;
    const unnamed = missing('unknown_gpu', 'the captures do not name the GPU');
    return {
      ...row,
      focus: row.rank === source.focus.rank && row.device === source.focus.device,
      name: gpu,
      sm_count: smCount(hardware, row.device, gpu),
      peak_bandwidth_bytes_per_s: gpu ? gpuPeakBandwidth(gpu) : unnamed,
      peak_flops_per_s: !gpu
        ? unnamed
        : dtype
          ? gpuPeakFlops(gpu, dtype)
          : missing('no_dtype', 'the session does not say in which dtype the model computed'),
    };
  });
}

/** gpu1_name of device 1 where there is one, else gpu_name, which speaks of all. */
export function factOf(hardware: ManifestData['hardware'], device: number | null, fact: string) {
  return (device === null ? null : hardware[`gpu${device}_${fact}`]) ?? hardware[`gpu_${fact}`] ?? null;
}

function smCount(hardware: ManifestData['hardware'], device: number | null, gpu: string | null): Figure {
  const told = factOf(hardware, device, 'sm_count');
  if (typeof told === 'number') return figure(told, 'SMs', 'the capture');
  const sheet = gpu ? gpuSheet(gpu) : null;
  return sheet
    ? figure(sheet.smCount, 'SMs', sheet.source.document)
    : missing('unknown_gpu', 'neither the capture nor a data sheet tells');
}
