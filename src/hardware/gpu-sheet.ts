import type { DType } from '../model/dtype.js';

/** dtypes a data sheet states a peak for; tfloat32 is what float32 matmuls use when the framework allows it. */
export type PeakDType = DType | 'tfloat32';

export interface GpuSheet {
  /** Device names exactly as NVML / amd-smi / torch.cuda.get_device_name report them. */
  names: readonly string[];
  /** Names that other products report, too: only the PCI id distinguishes them. */
  sharedNames?: readonly string[];
  /** vendor:device of PCI, e.g. 10de:2335; missing where no public list names it. */
  pciIds?: readonly string[];
  vendor: 'nvidia' | 'amd';
  architecture: string;
  /** Dense peaks, 10^12 operations a second. Tensor or matrix cores where they take the dtype, else vector units. */
  denseTflops: Readonly<Partial<Record<PeakDType | 'float6', number>>>;
  /** 10^9 bytes per second. */
  bandwidthGbps: number;
  /** 10^9 bytes as the sheet names it (what the driver reports differs by ECC and reservation). */
  memoryGb: number;
  /** Streaming multiprocessors or compute units. */
  smCount: number;
  /** Last-level cache, bytes; null where the sheet and the devices seen disagree or the sheet is silent. */
  l2Bytes: number | null;
  /** PCIe generation of the ×16 slot; missing where the sheet does not state it. */
  pcieGeneration?: 3 | 4 | 5 | 6;
  /** NVLink or Infinity Fabric to the other GPUs, all links, one direction, 10^9 bytes per second. */
  peerGbps?: number;
  source: { document: string; year: number };
  note?: string;
}
