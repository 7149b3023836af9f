import { type MemoryComponent, profileConfidences } from '../../model/documents/memory-profile.js';

export type Confidence = (typeof profileConfidences)[number];

/** One component of one GPU or of the host; `evidence` says what the bytes come from. */
export interface Part {
  component: MemoryComponent['component'];
  bytes: number;
  confidence: Confidence;
  evidence: string;
  /** Set if the bytes come from the calculator, not from a measurement. */
  basis?: 'formula';
}

/** Memory of one GPU (or the host) by component. */
export interface Place {
  gpu: number | null;
  parts: Part[];
  /** Stage of the allocator's peak; null if not reported. */
  peakStage: string | null;
}

export function weakest(confidences: readonly Confidence[]): Confidence {
  return profileConfidences[
    Math.max(...confidences.map((confidence) => profileConfidences.indexOf(confidence)), 0)
  ]!;
}
