import { isMatrixKernel } from '../../llm/kernel-work.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import type { KernelResult } from '../../model/documents/kernels.js';
import type { GpuRoofline } from '../../model/documents/gpu-roofline.js';
import type { DType } from '../../model/dtype.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { bandwidthAt, computePeaks, gpuRoofs } from '../roofs.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Peaks and bandwidths that a case is compared with. */
export interface CaseRoofs {
  flopsPerS(dtype: string): Figure;
  /** Bandwidth at a working set, and its level: on a CPU a small set is read from a cache. Null: main memory. */
  bytesPerS(workingSetBytes: number | null): { rate: Figure; level: string | null };
  launchNs: Figure;
  graphNodeNs: Figure;
}

/**
 * Measured roofs of the GPU, else its data sheet.
 * @param device cuda:1
 */
export function roofsOfGpu(name: string | null, device: string, roofline: GpuRoofline | null): CaseRoofs {
  const index = Number(/:(\d+)$/.exec(device)?.[1] ?? 0);
  const roofs = gpuRoofs(name, roofline, { index });
  return {
    flopsPerS: (dtype) => roofs.roofFlops(dtype as PeakDType),
    bytesPerS: () => ({ rate: roofs.roofBandwidth, level: null }),
    launchNs: roofs.launchNs,
    graphNodeNs: roofs.graphNodeNs,
  };
}

/** Roofs of a CPU measured through the embedded engine; there is no data sheet. */
export function roofsOfCpu(roofline: MachineRoofline | null, threads: number | null): CaseRoofs {
  const noLaunches = missing('cpu', 'a CPU has no kernel launches');
  if (roofline === null) {
    const notMeasured = missing(
      'no_roofline',
      `this CPU's roofs are not measured (run inferscope roofline${threads === null ? '' : ` --threads ${threads}`} once)`,
    );
    return {
      flopsPerS: () => notMeasured,
      bytesPerS: () => ({ rate: notMeasured, level: null }),
      launchNs: noLaunches,
      graphNodeNs: noLaunches,
    };
  }
  const source = `measured ${roofline.measured_at.slice(0, 10)} (${roofline.engine})`;
  const peaks = computePeaks(roofline);
  return {
    flopsPerS: (dtype) => {
      const peak = peaks[dtype as DType];
      return peak === undefined || peak === null
        ? missing('no_peak_for_dtype', `the roofline of this CPU has no ${dtype} peak`)
        : figure(peak, 'FLOP/s', source);
    },
    bytesPerS: (workingSet) => {
      const mainMemory = roofline.bandwidth.at(-1)!;
      const bandwidth =
        workingSet === null
          ? { bytesPerS: mainMemory.bytes_per_s, level: mainMemory.level }
          : bandwidthAt(roofline, workingSet);
      return {
        rate: figure(bandwidth.bytesPerS, 'B/s', `${source}, ${bandwidth.level}`),
        level: bandwidth.level,
      };
    },
    launchNs: noLaunches,
    graphNodeNs: noLaunches,
  };
}

type CaseRoof = Pick<KernelResult, 'roof_ns' | 'working_set_bytes' | 'roof_level' | 'roof_bytes_per_s'> & {
  bound: 'memory' | 'compute' | null;
};

/**
 * max(FLOPs / peak, bytes / bandwidth). Kernels without GEMMs run on vector units. Their peak is unknown here, so bytes
 * alone are their roof.
 */
export function roofOf(
  work: { kernel: string; dtype: string; flops: number; bytes: number; rotated_bytes: number | null },
  roofs: CaseRoofs,
): CaseRoof {
  const workingSet = work.rotated_bytes ?? work.bytes;
  const { rate, level } = roofs.bytesPerS(workingSet);
  const workingSetRoof = { working_set_bytes: workingSet, roof_level: level, roof_bytes_per_s: rate };
  if (rate.value === null) return { ...workingSetRoof, roof_ns: rate, bound: null };
  const memoryNs = (work.bytes / rate.value) * 1e9;
  const memoryRoof = figure(memoryNs, 'ns', `bytes / bandwidth, ${rate.source}`);
  if (!isMatrixKernel(work.kernel)) return { ...workingSetRoof, roof_ns: memoryRoof, bound: 'memory' };
  const peak = roofs.flopsPerS(work.dtype);
  if (peak.value === null) return { ...workingSetRoof, roof_ns: peak, bound: null };
  const computeNs = (work.flops / peak.value) * 1e9;
  return computeNs > memoryNs
    ? {
        ...workingSetRoof,
        roof_ns: figure(computeNs, 'ns', `FLOPs / peak, ${peak.source}`),
        bound: 'compute',
      }
    : { ...workingSetRoof, roof_ns: memoryRoof, bound: 'memory' };
}
