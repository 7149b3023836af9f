import type { Measurement, WeightStream } from '../../engines/onnx/microbenchmark.js';

export interface RooflinePlan {
  threads: number;
  /** Folder for temporary models. */
  scratch: string;
  /** Largest working set to measure, bytes. */
  maxBytes: number;
  /** The curve extends beyond twice this size, so that it ends in DRAM; null when unknown. */
  lastLevelCacheBytes: number | null;
}

export interface RooflineMeasurements {
  compute: Measurement[];
  /** Read kernels at each working-set size. */
  reads: Measurement[];
  /** Linear layers in each format and batch size of decode steps. */
  streams: WeightStream[];
}

export interface RooflineProgress {
  done: number;
  total: number;
  label: string;
}
