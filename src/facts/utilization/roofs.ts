import type { PeakFlops } from '../../llm/utilization.js';
import type { GpuRoofline } from '../../model/documents/gpu-roofline.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import { missing, type Figure, type MissingFigure } from '../../model/figure.js';
import type { ManifestData } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { deviceOf } from '../device.js';
import { gpuRoofs, measuredCpu } from '../roofs.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Denominators of MFU, MBU and roof_share. Figures have a source and cover all devices of a group. */
export interface UtilizationRoofs {
  kind: 'gpu' | 'cpu';
  name: string | null;
  devices: number;
  /** Data sheet (GPU) or measured (CPU). */
  peak: (dtype: PeakDType) => Figure;
  bandwidth: (workingSetBytes: number) => Figure;
  /** The memory level of a CPU that holds a working set; null for the memory of a GPU. */
  bandwidthLevel: (workingSetBytes: number) => string | null;
  /** Measured peaks, for roof_share; missing without a measurement. */
  measuredPeak: (dtype: PeakDType) => Figure;
  measuredBandwidth: (workingSetBytes: number) => Figure;
}

/**
 * Peaks of the device of a session's stages: dense data-sheet peaks of a GPU, measured roofs of a CPU. A GPU without a
 * data sheet has its measured peaks, if any.
 * @param cpu, gpu rooflines measured for the session; null without one
 */
export function utilizationRoofs(
  { hardware, workload }: Pick<ManifestData, 'hardware' | 'workload'>,
  { cpu, gpu }: { cpu: MachineRoofline | null; gpu: GpuRoofline | null },
  where: { onCpu: boolean; ordinal?: number | null; float32As?: 'float32' | 'tfloat32' },
): UtilizationRoofs {
  if (where.onCpu) return cpuRoofs(hardware['cpu_model'], cpu);
  const devices = workload?.tensor_parallel_size ?? 1;
  const { name } = deviceOf({ hardware, workload }, where.ordinal);
  const roofs = gpuRoofs(name, gpu, { index: where.ordinal ?? null, devices });
  const notMeasured = missing(
    'no_roofline',
    `no measured roofline of ${name ?? 'this GPU'} is in the session (inferscope roofline measures it)`,
  );
  const ranAs = (dtype: PeakDType) => (dtype === 'float32' ? (where.float32As ?? dtype) : dtype);
  return {
    kind: 'gpu',
    name,
    devices,
    peak: (dtype) => roofs.mfuFlops(ranAs(dtype)),
    bandwidth: () => roofs.mbuBandwidth,
    bandwidthLevel: () => null,
    measuredPeak: (dtype) => (roofs.measured === null ? notMeasured : roofs.measuredFlops(ranAs(dtype))),
    measuredBandwidth: () => (roofs.measured === null ? notMeasured : roofs.measuredBandwidth),
  };
}

/** SQL of the type that a GEMM multiplied in. Kernels with float32 inputs that multiply in TF32 have both in their name, or an instruction of it. */
export const gemmTypeSql =
  "CASE WHEN dtype = 'fp32' AND regexp_matches(name, 'tf32|tensorop|s1688', 'i') OR dtype IS NULL AND contains(name, 'tf32') THEN 'tf32' ELSE dtype END";

/** What float32 matrix multiplications of a timeline ran as: TF32 has up to eight times the peak of float32. */
export async function float32RanAs(database: SessionDatabase): Promise<'float32' | 'tfloat32'> {
  const [gemm] = await database.query<{ share: number | null }>(
    `SELECT sum(dur_ns) FILTER ((${gemmTypeSql}) = 'tf32') / sum(dur_ns) AS share
     FROM (SELECT name, dtype, sum(dur_ns) AS dur_ns FROM rank_kernels WHERE class = 'gemm' GROUP BY ALL)`,
  );
  return (gemm?.share ?? 0) < 0.5 ? 'float32' : 'tfloat32';
}

function cpuRoofs(model: unknown, roofline: MachineRoofline | null): UtilizationRoofs {
  const notMeasured = missing(
    'no_roofline',
    'a CPU has no data-sheet peak, and the session has no measured one (inferscope profile measures it)',
  );
  const measured = roofline && measuredCpu(roofline);
  const peak = (dtype: PeakDType): Figure => measured?.peak(dtype) ?? notMeasured;
  const bandwidth = (bytes: number): Figure => measured?.bandwidth(bytes) ?? notMeasured;
  return {
    kind: 'cpu',
    name: typeof model === 'string' ? model : null,
    devices: 1,
    peak,
    bandwidth,
    bandwidthLevel: (bytes) => measured?.bandwidthLevel(bytes) ?? null,
    measuredPeak: peak,
    measuredBandwidth: bandwidth,
  };
}

/** Peaks of the dtypes of some work, as src/llm takes them. The first missing peak is the reason for all. */
export function neededPeaks(
  dtypes: readonly PeakDType[],
  peak: (dtype: PeakDType) => Figure,
): PeakFlops | MissingFigure {
  const peaks: PeakFlops = {};
  for (const dtype of dtypes) {
    const figure = peak(dtype);
    if (figure.value === null) return figure;
    if (dtype !== 'tfloat32') peaks[dtype] = figure.value;
  }
  return peaks;
}
