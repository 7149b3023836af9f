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
import { reservedBytes } from './memory-reserve.js';
import { kvFormula, kvOf, sequencesOf, type Place, type Part } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { deviceCount, type Device } from './memory-shards.js';

interface Moment {
  /** As far as the cache goes. */
  request: ResolvedRequest;
  stage: 'prefill' | 'decode';
  kv: number;
  tokens: number;
  transient: TransientBytes;
}

/** A device of transformers: the fuller of prefill's last layer and the last decode step. */
export function transformersPlace(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  weights: Part,
): Place {
  const sequences = sequencesOf(request);
  const prefill = prefillMoment(a, device, request, sequences);
  const decode = decodeMoment(a, device, request, sequences);
  const at = decode && held(decode) > held(prefill) ? decode : prefill;
  const workspace = byArchitecture(cublasWorkspace, request.gpu?.architecture);
  const context = byArchitecture(cudaContext, request.gpu?.architecture);
  const grouped = deviceCount(request.parallel) > 1;
  return {
    peak: at.stage,
    kvNeeded: Math.max(prefill.kv, decode?.kv ?? 0),
    parts: {
      model_weights: weights,
      kv_cache: { bytes: at.kv, formula: kvFormula(a, at.request, sequences, at.tokens), confidence: 'high' },
      activations: {
        bytes: at.transient.bytes,
        formula: `${at.transient.formula}, in ${at.stage} (${at.transient.at})`,
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
      allocator_reserve: reservePart(a, device, request, {
        given: weights.bytes + held(at) + workspace.bytes,
        moving: at.kv + Math.max(prefill.transient.bytes, at.transient.bytes),
        workspace: workspace.bytes,
      }),
    },
  };
}

function held({ kv, transient }: Moment): number {
  return kv + transient.bytes;
}

/** What torch holds beyond what is in use at the peak. */
function reservePart(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  { given, moving, workspace }: { given: number; moving: number; workspace: number },
): Part {
  const { share, confidence } = allocatorReserveShare;
  if (request.reserve === 'share') {
    return { bytes: share * moving, formula: `${share * 100} % of cache and activations`, confidence };
  }
  const { end } = reservedBytes(a, device, request, workspace);
  return {
    bytes: Math.max(0, end - given),
    formula: 'torch’s caching allocator, gone through allocation by allocation, − what is in use at the peak',
    confidence: 'medium',
  };
}

/** A windowed layer keeps a view of all keys of the prompt until the first decode step; a static cache keeps all tokens. */
function wholeCache(request: ResolvedRequest): ResolvedRequest {
  return { ...request, hybridCache: false };
}

function prefillMoment(a: Architecture, device: Device, request: ResolvedRequest, sequences: number): Moment {
  const { inputLen, outputLen, cache } = request;
  const tokens = cache === 'static' ? inputLen + outputLen : inputLen;
  return {
    stage: 'prefill',
    request: wholeCache(request),
    kv: kvOf(a, device, wholeCache(request), sequences, tokens),
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
  const kept = growing ? request : wholeCache(request);
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
    stage: 'decode',
    request: kept,
    kv: kvOf(a, device, kept, sequences, tokens),
    tokens,
    transient: {
      ...transient,
      bytes: transient.bytes + copy,
      formula: transient.formula + (copy > 0 ? ' + one layer’s keys, copied as they grow' : ''),
    },
  };
}
