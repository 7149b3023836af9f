import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { weakest, type Place } from './part.js';

/** A GPU of an engine that reports nothing itself: the calculator's figures, and a residual that shows how far they are. */
export function formulaPlace(
  estimate: MemoryEstimate | null,
  at: number,
  gpu: number,
  complete: boolean,
): Place {
  const lines = estimate?.lines ?? [];
  return {
    gpu,
    peakStage: null,
    parts: lines.map(({ component, gpuBytes, formula, confidence }) => ({
      component,
      bytes: gpuBytes[at] ?? gpuBytes[0] ?? 0,
      confidence: component === 'kv_cache' && !complete ? 'low' : weakest([confidence, 'medium']),
      basis: 'formula' as const,
      evidence: `formula: ${formula}`,
    })),
  };
}
