import type { PeakFlops } from '../../llm/utilization.js';
import type { GpuRoofline } from '../../model/documents/gpu-roofline.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import { figure, missing, type Figure, type MissingFigure } from '../../model/figure.js';
import type { ManifestData } from '../../model/manifest.js';
import { deviceOf } from '../device.js';
import { bandwidthAt, computePeaks, gpuRoofs } from '../roofs.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** What MFU, MBU and roof_share divide by; figures carry their source, all devices of a group together. */
export interface UtilizationRoofs {
  kind: 'gpu' | 'cpu';
  name: string | null;
  devices: number;
  /** Data sheet (GPU) or measured (CPU). */
  peak: (dtype: PeakDType) => Figure;
  bandwidth: (workingSetBytes: number) => Figure;
  /** Measured peaks, for roof_share; missing where nothing was measured. */
  measuredPeak: (dtype: PeakDType) => Figure;
  measuredBandwidth: (workingSetBytes: number) => Figure;
}

/**
 * Peaks of the device a session's stages ran on: dense data-sheet peaks of a GPU, the measured roofs of a CPU. A GPU
 * without a sheet has the peaks that were measured on it, or none.
 * @param cpu, gpu rooflines measured for the session; null where there is none
 */
export function utilizationRoofs(
  { hardware, workload }: Pick<ManifestData, 'hardware' | 'workload'>,
  { cpu, gpu }: { cpu: MachineRoofline | null; gpu: GpuRoofline | null },
  where: { onCpu: boolean; ordinal?: number | null },
): UtilizationRoofs {
  if (where.onCpu) return cpuRoofs(hardware['cpu_model'], cpu);
  const devices = workload?.tensor_parallel_size ?? 1;
  const { name } = deviceOf({ hardware, workload }, where.ordinal);
  const roofs = gpuRoofs(name, gpu, { index: where.ordinal ?? null, devices });
  const none = missing(
    'no_roofline',
    `no measured roofline of ${name ?? 'this GPU'} is in the session (inferscope roofline measures it)`,
  );
  return {
    kind: 'gpu',
    name,
    devices,
    peak: roofs.mfuFlops,
    bandwidth: () => roofs.mbuBandwidth,
    measuredPeak: (dtype) => (roofs.measured === null ? none : roofs.roofFlops(dtype)),
    measuredBandwidth: () => (roofs.measured === null ? none : roofs.roofBandwidth),
  };
}

function cpuRoofs(model: unknown, roofline: MachineRoofline | null): UtilizationRoofs {
  const none = missing(
    'no_roofline',
    'a CPU has no data-sheet peak, and the session has no measured one (inferscope profile measures it)',
  );
  const peaks = roofline ? computePeaks(roofline) : {};
  const source = roofline ? `measured roofline (${roofline.engine})` : '';
  const peak = (dtype: PeakDType): Figure => {
    if (!roofline) return none;
    const value = dtype === 'tfloat32' ? undefined : peaks[dtype];
    return value ? figure(value, 'FLOP/s', source) : missing('unknown_peak', `no ${dtype} roof was measured`);
  };
  const bandwidth = (bytes: number): Figure => {
    if (!roofline) return none;
    const at = bandwidthAt(roofline, bytes);
    return figure(at.bytesPerS, 'B/s', `${source}, ${at.level}`);
  };
  return {
    kind: 'cpu',
    name: typeof model === 'string' ? model : null,
    devices: 1,
    peak,
    bandwidth,
    measuredPeak: peak,
    measuredBandwidth: bandwidth,
  };
}

/** The dtypes that work needs, as src/llm takes them; the first that has no peak is the reason for all. */
export function neededPeaks(
  dtypes: readonly PeakDType[],
  peak: (dtype: PeakDType) => Figure,
): PeakFlops | MissingFigure {
  const found: PeakFlops = {};
  for (const dtype of dtypes) {
    const one = peak(dtype);
    if (one.value === null) return one;
    if (dtype !== 'tfloat32') found[dtype] = one.value;
  }
  return found;
}
