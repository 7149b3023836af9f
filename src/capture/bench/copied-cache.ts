import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { kvCacheBytes } from '../../llm/kv-cache.js';
import type { BenchPoint } from '../../model/bench.js';
import type { Issue } from '../../model/document.js';
import { InferscopeError } from '../../model/errors.js';
import { formatBytes } from '../../vocabulary/format.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** Minimum copy as a share of the weights, which every decode step reads: a smaller copy is negligible. */
const minShare = 0.1;

/**
 * onnxruntime-node returns every output of a call as a new array (InferenceSessionWrap::Run in its
 * js/node/src/inference_session_wrap.cc, also for preallocated outputs): a decode step copies the whole
 * KV cache, though the operator appended to it in place. Seen with 1.30.0: page faults of exactly that size per step.
 */
export function copiedCache(model: OnnxModel, points: readonly BenchPoint[]): Issue[] {
  let largest: { bytes: number; point: string } | null = null;
  try {
    const architecture = readArchitecture(model.config);
    for (const { point, batch_size: batchSize, input_len, output_len } of points) {
      const contextTokens = input_len + output_len;
      const bytes = kvCacheBytes(architecture, { kvCache: 'float32', batchSize, contextTokens });
      if (bytes > (largest?.bytes ?? 0)) largest = { bytes, point };
    }
  } catch (error) {
    if (error instanceof InferscopeError) return [];
    throw error;
  }
  if (largest === null || largest.bytes < minShare * model.weight_bytes) return [];
  const text = `onnxruntime-node copies every output of a call, including the KV cache: ${formatBytes(largest.bytes)} per decode step at ${pointLabel(largest.point)}, compared with ${formatBytes(model.weight_bytes)} of weights. TPOT grows faster with batch and context than the work of the model.`;
  return [{ code: 'cache_copied', severity: 'warning', text }];
}
