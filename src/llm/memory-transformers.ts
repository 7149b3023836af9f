import { bytesPerElement } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import { kvElementsPerToken } from './kv-cache.js';
import { transformersStep, type TransientBytes } from './memory-activations.js';
import {
  allocatorReserveShare,
  byArchitecture,
  cublasWorkspace,
  cudaContext,
  decodeGraph,
  ncclBuffers,
} from './memory-constants.js';
import { kvFormula, kvOf, sequencesOf, type Place, type WeightsPart } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { deviceCount, type Device } from './memory-shards.js';

interface Moment {
  kv: number;
  tokens: number;
  transient: TransientBytes;
}

/** A device of transformers: the fuller of prefill's last layer and the last decode step. */
export function transformersPlace(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  weights: WeightsPart,
): Place {
  const sequences = sequencesOf(request);
  const prefill = prefillMoment(a, device, request, sequences);
  const decode = decodeMoment(a, device, request, sequences);
  const inPrefill = !decode || prefill.kv + prefill.transient.bytes >= decode.kv + decode.transient.bytes;
  const at = inPrefill ? prefill : decode;
  // Freed blocks stay with the allocator: the cache of decode grows into what prefill's activations left.
  const held = Math.max(prefill.transient.bytes, at.transient.bytes);
  const workspace = byArchitecture(cublasWorkspace, request.gpu?.architecture);
  const context = byArchitecture(cudaContext, request.gpu?.architecture);
  const grouped = deviceCount(request.parallel) > 1;
  const share = allocatorReserveShare.share;
  return {
    peak: inPrefill ? 'prefill' : 'decode',
    kvNeeded: at.kv,
    parts: {
      model_weights: weights,
      kv_cache: { bytes: at.kv, formula: kvFormula(a, request, sequences, at.tokens), confidence: 'high' },
      activations: {
        bytes: at.transient.bytes,
        formula: `${at.transient.formula}, at ${inPrefill ? 'prefill' : 'decode'} (${at.transient.at})`,
        confidence: 'medium',
      },
      framework_overhead: {
        bytes: workspace.bytes + (grouped ? ncclBuffers.bytes : 0),
        formula: `cuBLAS workspace${grouped ? ' + NCCL buffers' : ''}`,
        confidence: grouped ? ncclBuffers.confidence : workspace.confidence,
      },
      ...(request.cudaGraphs
        ? {
            cuda_graphs: {
              bytes: decodeGraph.bytes,
              formula: decodeGraph.source,
              confidence: decodeGraph.confidence,
            },
          }
        : {}),
      cuda_context: { bytes: context.bytes, formula: context.source, confidence: context.confidence },
      allocator_reserve: {
        bytes: weights.roundingBytes + share * (at.kv + held),
        formula: `weights rounded up to segments of 2 and 20 MiB + ${share * 100} % of cache and activations`,
        confidence: allocatorReserveShare.confidence,
      },
    },
  };
}

function prefillMoment(a: Architecture, device: Device, request: ResolvedRequest, sequences: number): Moment {
  const { inputLen, outputLen, cache } = request;
  const tokens = cache === 'static' ? inputLen + outputLen : inputLen;
  return {
    kv: kvOf(a, device, request, sequences, tokens),
    tokens,
    transient: transformersStep(a, {
      kinds: device.kinds,
      activations: request.storage.activations,
      sequences,
      newTokens: inputLen,
      contextTokens: 0,
      tensor: request.parallel.tensor,
      request,
    }),
  };
}

/** The last step: the prompt and all generated tokens but the last are in the cache. Null without a decode step. */
function decodeMoment(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  sequences: number,
): Moment | null {
  const { inputLen, outputLen, cache, storage, parallel } = request;
  if (outputLen < 2) return null;
  const growing = cache === 'growing';
  const tokens = inputLen + outputLen - (growing ? 1 : 0);
  const transient = transformersStep(a, {
    kinds: device.kinds,
    activations: storage.activations,
    sequences,
    newTokens: 1,
    contextTokens: tokens - 1,
    tensor: parallel.tensor,
    request,
  });
  // torch.cat makes a layer's keys anew beside the old ones.
  const widest = Math.max(
    ...device.kinds.map(({ attention }) => kvElementsPerToken(attention, parallel.tensor) / 2),
  );
  const copy = growing ? sequences * tokens * widest * bytesPerElement[storage.kvCache] : 0;
  return {
    kv: kvOf(a, device, request, sequences, tokens),
    tokens,
    transient: {
      ...transient,
      bytes: transient.bytes + copy,
      formula: transient.formula + (copy > 0 ? ' + one layer’s keys, copied as they grow' : ''),
    },
  };
}
