import type { GpuRoom } from '../../llm/memory-request.js';

export interface KnownGpu extends GpuRoom {
  totalBytes: number;
  /** Where the memory size comes from. */
  source: string;
}
