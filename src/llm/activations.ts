import { bytesPerElement, type DType } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { StageShape } from './shape.js';
import { floatStorage } from './storage.js';
import { stageWork } from './work.js';

export interface ActivationEstimate {
  bytes: number;
  /** low: from structure only. medium: fitted to measurements. Never high, because only an allocator knows. */
  confidence: 'low' | 'medium';
  source: string;
  /** Operation at the peak. */
  operation: string;
}

interface PeakOptions {
  activations: DType;
  /** Bytes of a stored attention score when attention is not fused; null when it is (the scores never exist). */
  scoreBytes?: number | null;
}

/**
 * Peak of live activations in one stage, from structure: the residual stream plus input and output of the largest
 * operation (plus its score matrix, B·H·T·C, if attention is not fused), for an executor that frees each tensor after
 * its last use. Real allocators use more (arenas, workspaces): confidence low.
 */
export function peakLiveActivations(
  a: Architecture,
  shape: StageShape,
  options: PeakOptions,
): ActivationEstimate {
  const { activations, scoreBytes = null } = options;
  const residual = shape.batchSize * shape.newTokens * a.hiddenSize * bytesPerElement[activations];
  const heads = Math.max(
    0,
    ...a.layers.map(({ attention }) => (attention.kind === 'recurrent' ? 0 : attention.headCount)),
  );
  const scores =
    shape.batchSize * heads * shape.newTokens * (shape.contextTokens + shape.newTokens) * (scoreBytes ?? 0);
  let bytes = 0;
  let operation = '';
  for (const op of stageWork(a, shape, floatStorage(activations))) {
    // A norm's traffic includes the residual; after the last layer there is none.
    const liveResidual = op.layer === null || op.class === 'norm' ? 0 : residual;
    const live =
      liveResidual +
      op.bytes.activations_in +
      op.bytes.activations_out +
      (op.class === 'attention' ? scores : 0);
    if (live > bytes) {
      bytes = live;
      operation = op.layer === null ? op.name : `layers.${op.layer}.${op.name}`;
    }
  }
  return {
    bytes,
    confidence: 'low',
    source: `residual stream + input and output of the largest operation${scoreBytes === null ? '' : ' + attention scores'}`,
    operation,
  };
}
