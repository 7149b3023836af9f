import type { DType } from '../model/dtype.js';

/** dtypes with a peak on a data sheet; tfloat32 is used for float32 matmuls if the framework allows it. */
export type PeakDType = DType | 'tfloat32';

export interface GpuSheet {
  /** Device names exactly as NVML / amd-smi / torch.cuda.get_device_name report them. */
  names: readonly string[];
  /** Names that other products report too; only the PCI id distinguishes them. */
  sharedNames?: readonly string[];
  /** PCI vendor:device, e.g. 10de:2335; missing if no public list names it. */
  pciIds?: readonly string[];
  vendor: 'nvidia' | 'amd';
  architecture: string;
  /** Dense peaks, 10^12 operations per second: of tensor or matrix cores if they support the dtype, else of vector units. */
  denseTflops: Readonly<Partial<Record<PeakDType | 'float6', number>>>;
  /** 10^9 bytes per second. */
  bandwidthGbps: number;
  /** 10^9 bytes as on the sheet (drivers report less because of ECC and reservation). */
  memoryGb: number;
  /** Streaming multiprocessors or compute units. */
  smCount: number;
  /** Last-level cache, bytes; null if the sheet does not state it or devices differ from it. */
  l2Bytes: number | null;
  /** PCIe generation of the ×16 slot; missing if not on the sheet. */
  pcieGeneration?: 3 | 4 | 5 | 6;
  /** NVLink or Infinity Fabric to the other GPUs, all links, one direction, 10^9 bytes per second. */
  peerGbps?: number;
  source: { document: string; year: number };
  note?: string;
}
