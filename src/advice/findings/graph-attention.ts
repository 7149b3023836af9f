import type { PhaseKind } from '../../model/documents/trace.js';
import { bytesPerElement } from '../../model/dtype.js';
import type { FindingContext } from './rule.js';
import { stageShape } from './stage-shape.js';

/**
 * With a mask, PyTorch's fused attention takes about twice as long: 1.45 times in a prefill of Phi-3's form, 2.1 to 3.1 times for seven
 * shapes of 128 to 2048 tokens alone (H200, torch 2.11).
 */
const maskedRatio = 2;
/** A copy that repeats heads writes at a fifth of the memory's bandwidth: 27 MB in 32 µs on an H200 that reads 4.4 TB/s. */
const repeatShare = 0.2;

export const slowerAttention = 'in a graph transformers gives it a mask and repeats shared keys and values';

/**
 * Time by which attention of a mean instance gets longer in a CUDA graph, ms. transformers 5 leaves out a mask without padding, but not while
 * a graph is captured: it cannot look at the mask then. With a mask it also repeats keys and values for the query heads that share them.
 * @param attention_ms time of its attention kernels
 */
export async function graphAttentionMs(
  context: FindingContext,
  kind: PhaseKind,
  attention_ms: number,
): Promise<number> {
  const { workload } = context.manifest;
  const facts = workload?.model?.facts;
  if (workload?.engine.name !== 'transformers' || facts?.attention !== 'sdpa' || attention_ms === 0) return 0;
  // Decode steps with a static cache have the mask already.
  if (kind !== 'prefill' && (kind !== 'decode' || /static/i.test(facts.cache ?? ''))) return 0;
  return (maskedRatio - 1) * attention_ms + (await repeatedHeadsMs(context, kind));
}

async function repeatedHeadsMs(context: FindingContext, kind: 'prefill' | 'decode'): Promise<number> {
  const shape = await stageShape(context, kind);
  const bandwidth = context.roofs?.roofBandwidth.value ?? null;
  if (!shape || bandwidth === null || 'reason' in context.model) return 0;
  const { architecture, storage } = context.model;
  const tokens = shape.batchSize * (shape.contextTokens + shape.newTokens);
  const elements = architecture.layers.reduce((sum, { attention }) => {
    const isShared = attention.kind === 'grouped' && attention.kvHeadCount < attention.headCount;
    return sum + (isShared ? 2 * tokens * attention.headCount * attention.headDim : 0);
  }, 0);
  return (1e3 * elements * bytesPerElement[storage.kvCache]) / (repeatShare * bandwidth);
}
