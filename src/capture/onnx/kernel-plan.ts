import type { KernelDevice, KernelOrder, KernelProgress } from '../../model/kernels.js';

export interface KernelPlan {
  order: KernelOrder;
  threads: number;
  /** See CaseSettings of the engine. */
  rotateBytes: number;
  scratch: string;
}

export type KernelChildProgress = KernelProgress | { type: 'device'; device: KernelDevice };
