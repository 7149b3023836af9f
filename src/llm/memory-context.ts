import { attentionPlans, byArchitecture, cudaContext, sourceWithRuns } from './memory-constants.js';
import type { Part } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { formatGb } from '../vocabulary/format.js';

/**
 * Driver memory of a torch process outside its allocator: the context with library code, and on measured architectures
 * the attention kernels that cuDNN generates during the run, one per cache length. A growing cache has a new length at
 * every decode step of the first repeat.
 */
export function contextPart({ gpu, storage, attention, cache, outputLen }: ResolvedRequest): Part {
  const context = byArchitecture(cudaContext, gpu?.architecture);
  const { bytes, confidence } = context;
  const formula = sourceWithRuns(context);
  const generation = gpu?.architecture?.split(' ')[0] ?? '';
  const plans = generation in attentionPlans ? attentionPlans[generation]! : null;
  const is16Bit = storage.activations === 'float16' || storage.activations === 'bfloat16';
  // Unfused attention and float32 use other kernels.
  if (!plans || attention === 'eager' || !is16Bit) return { bytes, formula, confidence };
  const steps = cache === 'growing' ? Math.max(0, outputLen - 1) : 0;
  const chunks = plans.series.reduce(
    (sum, { first, every }) => sum + (steps < first ? 0 : 1 + Math.floor((steps - first) / every)),
    0,
  );
  const planBytes = chunks * plans.chunkBytes;
  return {
    bytes: bytes + plans.codeBytes + planBytes,
    formula: `${formula}; ${sourceWithRuns(plans)}${planBytes > 0 ? `: ${steps} lengths in decode, ${formatGb(planBytes)}` : ''}`,
    confidence: steps > plans.measuredSteps ? 'low' : confidence,
  };
}
