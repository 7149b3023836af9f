import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { weakest, type Part, type Place } from './part.js';
import type { KvPool } from './kv-pool.js';
import { plural } from '../../vocabulary/format.js';

const computedComponents = new Set(['model_weights', 'kv_cache', 'activations']);

/**
 * A running server reports at most its KV pool, in bytes or tokens. Weights and activations are computed from the options,
 * and the remainder is a residual.
 */
export function serverPlace(estimate: MemoryEstimate | null, pool: KvPool | null): Place {
  const recorded = pool?.bytes ?? null;
  const lines = (estimate?.lines ?? []).filter(({ component }) => computedComponents.has(component));
  const parts: Part[] = lines
    .filter(({ component }) => component !== 'kv_cache' || recorded === null)
    .map(({ component, bytes, formula, confidence }) => {
      if (component === 'kv_cache' && pool?.tokens && estimate) {
        const perToken = estimate.kvBytesPerToken;
        return {
          component,
          bytes: pool.tokens * perToken,
          confidence: 'medium',
          evidence: `${plural(pool.tokens, 'token')} of its pool (${pool.source}) × ${plural(perToken, 'byte')} per token from the model's dimensions`,
        };
      }
      return {
        component,
        bytes,
        confidence: weakest([confidence, 'low']),
        basis: 'formula' as const,
        evidence: `formula: ${formula}; in the typed dtype; the server may use another one`,
      };
    });
  if (recorded !== null) {
    const evidence = `${pool!.source}: kv_cache_memory_bytes of its configuration, per GPU (on a CPU per process), reserved at startup`;
    parts.push({ component: 'kv_cache', bytes: recorded, confidence: 'medium', evidence });
  }
  return { gpu: null, peakStage: null, parts };
}
