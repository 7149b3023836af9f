import type { MemoryProfile } from '../../model/documents/memory-profile.js';

/** Short field names for users' jq lines, with the same values. */
export function withAliases({
  memory_breakdown: parts,
}: MemoryProfile): Pick<MemoryProfile, 'memory' | 'memory_breakdown'> {
  return {
    memory: { total_gb: parts.total_measured_gb },
    memory_breakdown: {
      ...parts,
      weights: parts.model_weights_gb,
      kv_cache: parts.kv_cache_gb,
      activations: parts.activations_gb,
      overhead: parts.framework_overhead_gb,
      confidence: parts.confidence_levels.overall,
    },
  };
}
