import { type MemoryComponent, profileConfidences } from '../../model/documents/memory-profile.js';

export type Confidence = (typeof profileConfidences)[number];

/** One component of one GPU, or of the host; `evidence` is what it rests on, in words. */
export interface Part {
  component: MemoryComponent['component'];
  bytes: number;
  confidence: Confidence;
  evidence: string;
  /** formula: of the calculator, nothing measured it; left out where it was measured. */
  basis?: 'formula';
}

/** What one GPU (or the host) held, and when the framework held most. */
export interface Place {
  gpu: number | null;
  parts: Part[];
  /** Stage of the allocator's peak; null where not reported. */
  peakStage: string | null;
}

/** The least certain of them. */
export function weakest(confidences: readonly Confidence[]): Confidence {
  return profileConfidences[
    Math.max(...confidences.map((confidence) => profileConfidences.indexOf(confidence)), 0)
  ]!;
}
