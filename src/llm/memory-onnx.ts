import { peakLiveActivations } from './activations.js';
import type { Architecture } from './architecture.js';
import { onnxArena, onnxRuntime, sourceWithRuns } from './memory-constants.js';
import { kvFormula, kvOf, type Part, type Place } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';

/** Main memory of the embedded engine's process. */
export function onnxPlace(a: Architecture, device: Device, request: ResolvedRequest, weights: Part): Place {
  const { batchSize, inputLen, outputLen, storage } = request;
  const tokens = inputLen + outputLen;
  const kv = kvOf(a, device, request, batchSize, tokens);
  const live = peakLiveActivations(
    a,
    { phase: 'prefill', batchSize, newTokens: inputLen, contextTokens: 0 },
    { activations: storage.activations },
  );
  return {
    peak: 'prefill',
    kvNeeded: kv,
    parts: {
      model_weights: weights,
      kv_cache: { bytes: kv, formula: kvFormula(a, request, batchSize, tokens), confidence: 'high' },
      activations: { bytes: live.bytes, formula: live.source, confidence: 'low' },
      framework_overhead: {
        bytes: onnxRuntime.bytes,
        formula: sourceWithRuns(onnxRuntime),
        confidence: onnxRuntime.confidence,
      },
      allocator_reserve: {
        bytes: onnxArena.fixedBytes + onnxArena.perKvByte * kv + onnxArena.perActivationByte * live.bytes,
        formula: sourceWithRuns(onnxArena),
        confidence: onnxArena.confidence,
      },
    },
  };
}
