import type { Architecture } from './architecture.js';
import { symbolsOf, transformersStep } from './memory-activations.js';
import {
  allocatorReserveShare,
  byArchitecture,
  cublasWorkspace,
  ncclBuffers,
  pythonWithTorch,
  sourceWithRuns,
} from './memory-constants.js';
import { contextPart } from './memory-context.js';
import { encoderDecoderMoments, type Moment } from './memory-encoder-decoder.js';
import { graphPoolBytes, reservedBytes } from './memory-reserve.js';
import { kvFormula, kvOf, sequencesOf, type Place, type Part } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { deviceCount, type Device } from './memory-shards.js';
import { formatPercent } from '../vocabulary/format.js';

/** Families with a tensor order that was checked against transformers (memory-forward.test.ts). */
const checkedFamilies = new Set([
  'Llama',
  'Mistral',
  'Mixtral',
  'Qwen2',
  'Qwen3',
  'Qwen2-MoE',
  'Qwen3-MoE',
  'Gemma',
  'Gemma 2',
  'Gemma 3',
  'Phi',
  'Phi-3',
  'GPT-2',
  'OPT',
  'DeepSeek V2',
  'DeepSeek V3',
]);

/** A device of transformers: the larger of prefill's last layer and the last decode step. */
export function transformersPlace(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  weights: Part,
): Place {
  const sequences = sequencesOf(request);
  const { prefill, decode } = a.encoder
    ? encoderDecoderMoments(a, device, request, sequences)
    : {
        prefill: prefillMoment(a, device, request, sequences),
        decode: decodeMoment(a, device, request, sequences),
      };
  const largest = decode && bytesAt(decode) > bytesAt(prefill) ? decode : prefill;
  const tensorParts: Place['parts'] = {
    model_weights: weights,
    kv_cache: {
      bytes: largest.kv,
      formula: largest.kvFormula,
      confidence: 'high',
    },
    activations: {
      bytes: largest.transient.bytes,
      formula: `${largest.transient.formula}, in ${largest.stage} (${largest.transient.place === 'mlp' ? 'MLP' : largest.transient.place}); ${symbolsOf(largest.transient.formula)}`,
      confidence: checkedFamilies.has(a.family) ? 'medium' : 'low',
    },
  };
  const overhead =
    request.device === 'cpu'
      ? { framework_overhead: { ...pythonWithTorch, formula: sourceWithRuns(pythonWithTorch) } }
      : overheadOnGpu(a, device, request, {
          used: weights.bytes + bytesAt(largest),
          moving: largest.kv + Math.max(prefill.transient.bytes, largest.transient.bytes),
        });
  return {
    peak: largest.stage,
    kvNeeded: Math.max(prefill.kv, decode?.kv ?? 0),
    parts: { ...tensorParts, ...overhead },
  };
}

/** Memory of the driver, the libraries and torch's allocator in addition to tensors. */
function overheadOnGpu(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  { used, moving }: { used: number; moving: number },
): Place['parts'] {
  const workspace = byArchitecture(cublasWorkspace, request.gpu?.architecture);
  const grouped = deviceCount(request.parallel) > 1;
  // A decode step runs on a separate stream before it is captured.
  const streams = request.cudaGraphs ? 2 : 1;
  return {
    framework_overhead: {
      bytes: streams * workspace.bytes + (grouped ? ncclBuffers.bytes : 0),
      formula: `cuBLAS workspace${streams > 1 ? ' of two streams' : ''}${grouped ? ` + NCCL buffers: ${sourceWithRuns(ncclBuffers)}` : ''}`,
      confidence: grouped ? ncclBuffers.confidence : workspace.confidence,
    },
    ...(request.cudaGraphs
      ? {
          cuda_graphs: {
            bytes: graphPoolBytes(a, device, request, workspace.bytes),
            formula:
              "private pool of a captured decode step: cuBLAS workspace + its tensors, in torch's segments",
            confidence: 'medium' as const,
          },
        }
      : {}),
    cuda_context: contextPart(request),
    allocator_reserve: reservePart(a, device, request, {
      allocatedBytes: used + workspace.bytes,
      moving,
      workspace: workspace.bytes,
    }),
  };
}

function bytesAt({ kv, transient }: Moment): number {
  return kv + transient.bytes;
}

/** Torch's reserve beyond the memory in use at the peak. */
function reservePart(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  { allocatedBytes, moving, workspace }: { allocatedBytes: number; moving: number; workspace: number },
): Part {
  const { share, confidence } = allocatorReserveShare;
  // The order of an encoder-decoder model's allocations is not modeled.
  if (request.reserve === 'share' || a.encoder) {
    return {
      bytes: share * moving,
      formula: `${formatPercent(share)} of cache and activations: ${sourceWithRuns(allocatorReserveShare)}`,
      confidence,
    };
  }
  const { end } = reservedBytes(a, device, request, workspace);
  return {
    bytes: Math.max(0, end - allocatedBytes),
    formula: "simulation of torch's caching allocator − memory in use at the peak",
    confidence: 'medium',
  };
}

/**
 * A windowed layer keeps a view of all keys of the prompt until the first decode step; a static cache keeps all tokens.
 */
function wholeCache(request: ResolvedRequest): ResolvedRequest {
  return { ...request, hybridCache: false };
}

function prefillMoment(a: Architecture, device: Device, request: ResolvedRequest, sequences: number): Moment {
  const { inputLen, outputLen, cache } = request;
  const tokens = cache === 'static' ? inputLen + outputLen : inputLen;
  const kv = kvOf(a, device, wholeCache(request), sequences, tokens);
  const transient = transformersStep(a, device.layers, request, { cachedTokens: 0, newTokens: inputLen, kv });
  return { stage: 'prefill', kv, kvFormula: kvFormula(a, wholeCache(request), sequences, tokens), transient };
}

/** The last step: the cache has the prompt and all generated tokens except the last. Null without a decode step. */
function decodeMoment(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  sequences: number,
): Moment | null {
  const { inputLen, outputLen, cache } = request;
  if (outputLen < 2) return null;
  const growing = cache === 'growing';
  const cacheRequest = growing ? request : wholeCache(request);
  const tokens = inputLen + outputLen - (growing ? 1 : 0);
  const kv = kvOf(a, device, cacheRequest, sequences, tokens);
  const transient = transformersStep(a, device.layers, request, {
    cachedTokens: inputLen + outputLen - 2,
    newTokens: 1,
    kv,
  });
  return { stage: 'decode', kv, kvFormula: kvFormula(a, cacheRequest, sequences, tokens), transient };
}
