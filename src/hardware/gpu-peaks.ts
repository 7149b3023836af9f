import type { DType } from '../model/dtype.js';
import type { Figure } from '../model/figure.js';
import { figure, missing } from '../model/figure.js';
import { gpuSheets } from './gpu-sheets.js';

/** dtypes a data sheet states a peak for; tfloat32 is what float32 matmuls use when the framework allows it. */
export type PeakDType = DType | 'tfloat32';

export interface GpuSheet {
  /** Device names exactly as NVML / amd-smi / torch.cuda.get_device_name report them. */
  names: readonly string[];
  vendor: 'nvidia' | 'amd';
  architecture: string;
  /** Dense peaks, 10^12 operations a second. Tensor or matrix cores where they take the dtype, else vector units. */
  denseTflops: Readonly<Partial<Record<PeakDType, number>>>;
  /** 10^9 bytes a second. */
  bandwidthGbps: number;
  /** 10^9 bytes as the sheet names it (what the driver reports differs by ECC and reservation). */
  memoryGb: number;
  /** Streaming multiprocessors or compute units. */
  smCount: number;
  /** Last-level cache, bytes; null where the sheet and the devices seen disagree or the sheet is silent. */
  l2Bytes: number | null;
  tdpW: number;
  source: { document: string; year: number };
  note?: string;
}

/**
 * The data sheet of a GPU by its exact reported name. Null for any other name: an unknown GPU is unknown, it is
 * never the nearest known one (an A10G is not an A10; an "H100 PCIe" is not an "H100").
 */
export function gpuSheet(name: string): GpuSheet | null {
  const wanted = name.trim();
  return gpuSheets.find((sheet) => sheet.names.includes(wanted)) ?? null;
}

/** Dense data-sheet peak in FLOP/s (integer dtypes: operations/s) for MFU; missing with the reason otherwise. */
export function gpuPeakFlops(name: string, dtype: PeakDType): Figure {
  const sheet = gpuSheet(name);
  if (!sheet) return unknownGpu(name);
  const tflops = sheet.denseTflops[dtype];
  if (tflops === undefined) {
    return missing('no_peak_for_dtype', `the data sheet of ${name} states no dense ${dtype} peak`);
  }
  return figure(tflops * 1e12, 'FLOP/s', citation(sheet));
}

/** Data-sheet memory bandwidth in B/s for MBU; missing with the reason for an unknown GPU. */
export function gpuPeakBandwidth(name: string): Figure {
  const sheet = gpuSheet(name);
  return sheet ? figure(sheet.bandwidthGbps * 1e9, 'B/s', citation(sheet)) : unknownGpu(name);
}

function unknownGpu(name: string): Figure {
  return missing('unknown_gpu', `no data sheet is known for a GPU named "${name}"`);
}

function citation(sheet: GpuSheet): string {
  return `${sheet.source.document} (${sheet.source.year})`;
}
