import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { weakest, type Part, type Place } from './part.js';
import type { KvPool } from './kv-pool.js';

const counted = new Set(['model_weights', 'kv_cache', 'activations']);

/**
 * A server that was started by somebody else tells the tokens of its KV pool at most: the rest is arithmetic of what was
 * typed, and a residual.
 */
export function serverPlace(estimate: MemoryEstimate | null, pool: KvPool | null): Place {
  const told = pool?.bytes ?? null;
  const lines = (estimate?.lines ?? []).filter(({ component }) => counted.has(component));
  const parts: Part[] = lines
    .filter(({ component }) => component !== 'kv_cache' || told === null)
    .map(({ component, bytes, formula, confidence }) => {
      if (component === 'kv_cache' && pool?.tokens && estimate) {
        const perToken = estimate.kvBytesPerToken;
        return {
          component,
          bytes: pool.tokens * perToken,
          confidence: 'medium',
          evidence: `${pool.tokens} tokens of its pool (${pool.source}) × ${perToken} bytes a token by the model’s dimensions`,
        };
      }
      return {
        component,
        bytes,
        confidence: weakest([confidence, 'low']),
        basis: 'formula' as const,
        evidence: `formula: ${formula}; in the dtype that was typed, the server may run another`,
      };
    });
  if (told !== null) {
    const evidence = `${pool!.source}: kv_cache_memory_bytes of its configuration, of each GPU (on a CPU each process), set aside when it was started`;
    parts.push({ component: 'kv_cache', bytes: told, confidence: 'medium', evidence });
  }
  return { gpu: null, peakStage: null, parts };
}
