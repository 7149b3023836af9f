import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { weakest, type Place } from './part.js';

/**
 * Memory of one GPU by the calculator's formulas, for engines that report none.
 * @param gpuIndex index of the GPU in the estimate's `gpuBytes`
 * @param kvHeadsKnown whether the model's dimensions determine the KV cache
 */
export function formulaPlace(
  estimate: MemoryEstimate | null,
  gpuIndex: number,
  gpu: number,
  kvHeadsKnown: boolean,
): Place {
  const lines = estimate?.lines ?? [];
  return {
    gpu,
    peakStage: null,
    parts: lines.map(({ component, gpuBytes, formula, confidence }) => ({
      component,
      bytes: gpuBytes[gpuIndex] ?? gpuBytes[0] ?? 0,
      confidence: component === 'kv_cache' && !kvHeadsKnown ? 'low' : weakest([confidence, 'medium']),
      basis: 'formula' as const,
      evidence: `formula: ${formula}`,
    })),
  };
}
