import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { weakest, type Place } from './part.js';
import type { KvPool } from './kv-pool.js';

const counted = new Set(['model_weights', 'kv_cache', 'activations']);

/**
 * A server that was started by somebody else tells the tokens of its KV pool at most: the rest is arithmetic of what was
 * typed, and a residual.
 */
export function serverPlace(estimate: MemoryEstimate | null, pool: KvPool | null): Place {
  const lines = (estimate?.lines ?? []).filter(({ component }) => counted.has(component));
  return {
    gpu: null,
    peakStage: null,
    parts: lines.map(({ component, bytes, formula, confidence }) => {
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
        evidence: `formula: ${formula}; in the dtype that was typed, the server may run another`,
      };
    }),
  };
}
