import type { Architecture, Layer } from './architecture.js';
import {
  allocatableGib,
  byArchitecture,
  cublasWorkspace,
  l2Cache,
  sourceWithRuns,
  vllmContext,
  vllmGroupBuffers,
  vllmNonTorch,
  vllmOnCpu,
  type MemoryConstant,
} from './memory-constants.js';
import { kvFormula, kvOf, sequencesOf, type Part, type Place } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { deviceCount, type Device } from './memory-shards.js';
import { vllmGraphPart } from './memory-vllm-graphs.js';
import {
  isRecentVllm,
  onCublas,
  onSecondRunner,
  runnerBuffers,
  vllmActivationPeak,
} from './memory-vllm-profile.js';
import { loadingRemainders } from './memory-vllm-weights.js';
import { plural } from '../vocabulary/format.js';

/**
 * A device of vLLM (for CPU builds a worker) after startup: weights, the activation peak of its profiling run and
 * non-torch memory; the KV pool takes the remainder of utilization × total. Context, graphs and the model runner's
 * tensors are outside.
 */
export function vllmPlace(a: Architecture, device: Device, request: ResolvedRequest, matrices: Part): Place {
  const { gpu, gpuMemoryUtilization: share, storage, maxNumBatchedTokens, maxNumSeqs, parallel } = request;
  const weights = request.device === 'cpu' ? matrices : loadedWeights(device, request, matrices);
  const onGpu = (constant: Readonly<Record<string, MemoryConstant>>) =>
    request.device === 'cpu' ? 0 : byArchitecture(constant, gpu?.architecture).bytes;
  const activations = vllmActivationPeak(
    { ...a, layers: device.kinds.map((layer) => shardedMlp(layer, parallel.tensor)) },
    {
      activations: storage.activations,
      maxNumBatchedTokens,
      maxNumSeqs,
      // enforce_eager disables both compilation and graphs.
      compiled: request.device === 'gpu' && request.cudaGraphs,
      secondRunner: onSecondRunner(a, request),
      workspaceBytes: onGpu(cublasWorkspace),
      cublasLayers: onCublas(request),
      l2Bytes: onGpu(l2Cache),
    },
  );
  const nonTorch = vllmNonTorch[nonTorchKind(request)];
  const sequences = sequencesOf(request);
  const tokens = request.inputLen + request.outputLen;
  // The pool is given out in whole blocks.
  const blockTokens = Math.ceil(tokens / request.blockSize) * request.blockSize;
  const kvNeeded = kvOf(a, device, request, sequences, blockTokens);
  const otherBytes = weights.bytes + activations.bytes + nonTorch.bytes;
  const total = countedTotal(request);
  const pool =
    request.kvPoolBytes ?? (total === null ? null : Math.max(0, Math.ceil(total * share) - otherBytes));
  return {
    peak: 'startup',
    kvNeeded,
    parts: {
      model_weights: weights,
      ...(request.device === 'cpu'
        ? overheadOnCpu(deviceCount(parallel))
        : overheadOnGpu(a, device, nonTorch, request)),
      kv_cache:
        pool === null
          ? { bytes: kvNeeded, formula: kvFormula(a, request, sequences, tokens), confidence: 'high' }
          : {
              bytes: pool,
              formula:
                request.kvPoolBytes === null
                  ? `the pool: ${share} × total − weights − activations − non-torch memory`
                  : 'the pool, as set or logged',
              confidence: request.kvPoolBytes === null ? 'medium' : 'high',
            },
      activations: { bytes: activations.bytes, formula: activations.source, confidence: 'medium' },
    },
  };
}

/** The constant for non-torch memory: in a group it depends on whether NCCL is set up before vLLM counts. */
export function nonTorchKind({
  parallel,
  engineVersion,
}: Pick<ResolvedRequest, 'parallel' | 'engineVersion'>): keyof typeof vllmNonTorch {
  if (deviceCount(parallel) === 1) return 'single';
  return isRecentVllm(engineVersion) ? 'group' : 'groupEarlier';
}

/** Weights as loaded, including the allocator's rounding. */
function loadedWeights(device: Device, { storage, engineVersion }: ResolvedRequest, matrices: Part): Part {
  const roundingBytes = isRecentVllm(engineVersion) ? loadingRemainders(device.tensors, storage) : 0;
  return roundingBytes === 0
    ? matrices
    : {
        ...matrices,
        bytes: matrices.bytes + roundingBytes,
        formula: `${matrices.formula} + segments rounded up to 2 MiB`,
      };
}

/**
 * The total of which vLLM takes its share: cudaMemGetInfo's, without the driver's reserve (on an H200 139.8 of NVML's
 * 140.4 GiB).
 */
function countedTotal({ gpu }: ResolvedRequest): number | null {
  if (!gpu || gpu.totalBytes === null) return null;
  const allocatable = gpu.name === null ? undefined : allocatableGib[gpu.name];
  return allocatable === undefined
    ? gpu.totalBytes
    : Math.min(gpu.totalBytes, Math.round(allocatable * 2 ** 30));
}

function overheadOnGpu(
  a: Architecture,
  device: Device,
  nonTorch: MemoryConstant,
  request: ResolvedRequest,
): Place['parts'] {
  const { cudaGraphs, maxNumSeqs } = request;
  const part = (constant: MemoryConstant): Part => ({
    bytes: constant.bytes,
    formula: sourceWithRuns(constant),
    confidence: constant.confidence,
  });
  const buffers = onSecondRunner(a, request) ? runnerBuffers(a, maxNumSeqs) : 0;
  return {
    framework_overhead: part(nonTorch),
    ...(cudaGraphs ? { cuda_graphs: vllmGraphPart(a, device, request) } : {}),
    cuda_context: contextPart(request),
    ...(buffers > 0
      ? {
          allocator_reserve: {
            bytes: buffers,
            formula: `counts and masks of the sampler for ${maxNumSeqs} sequences × ${plural(a.vocabSize, 'token')}, not counted by vLLM`,
            confidence: 'medium',
          },
        }
      : {}),
  };
}

/** Memory in use before vLLM counts: the context, and in a group NCCL's buffers. */
function contextPart({ gpu, parallel, engineVersion }: ResolvedRequest): Part {
  const context = byArchitecture(vllmContext, gpu?.architecture);
  const { bytes, confidence } = context;
  const formula = sourceWithRuns(context);
  if (nonTorchKind({ parallel, engineVersion }) !== 'group') return { bytes, formula, confidence };
  return {
    bytes: bytes + vllmGroupBuffers.bytes,
    formula: `${formula} + ${sourceWithRuns(vllmGroupBuffers)}`,
    confidence,
  };
}

/** In main memory there is no context and no graph, and the sum includes all processes. */
function overheadOnCpu(ranks: number): Place['parts'] {
  const { processesBytes, workerBytes, confidence } = vllmOnCpu;
  const formula = sourceWithRuns(vllmOnCpu);
  return { framework_overhead: { bytes: processesBytes / ranks + workerBytes, formula, confidence } };
}

function shardedMlp(layer: Layer, tensor: number): Layer {
  const { mlp } = layer;
  if (mlp.kind === 'none') return layer;
  return mlp.kind === 'dense'
    ? { ...layer, mlp: { ...mlp, intermediateSize: mlp.intermediateSize / tensor } }
    : {
        ...layer,
        mlp: {
          ...mlp,
          intermediateSize: mlp.intermediateSize / tensor,
          sharedIntermediateSize: mlp.sharedIntermediateSize / tensor,
        },
      };
}

export interface PoolCapacity {
  tokens: number;
  blocks: number | null;
  /** Sequences of max_model_len at once. */
  concurrency: number;
}

/**
 * Tokens that a KV pool of `poolBytes` on one device has room for. With full attention in all layers: whole blocks ×
 * block_size. With windowed layers the pool fits `concurrency` sequences of max_model_len, and tokens are
 * floor(concurrency × max_model_len), as in vLLM's log.
 */
export function poolCapacity(
  a: Architecture,
  device: Pick<Device, 'layers'>,
  request: ResolvedRequest,
  poolBytes: number,
): PoolCapacity {
  const { blockSize, maxModelLen } = request;
  // States of recurrent layers do not grow with tokens, and windows stop growing at some length.
  const bounded = device.layers.some(
    ({ attention }) => attention.kind === 'recurrent' || (request.hybridCache && attention.window !== null),
  );
  if (bounded) {
    const sequenceBytes = kvOf(a, device, request, 1, Math.ceil(maxModelLen / blockSize) * blockSize);
    const concurrency = poolBytes / sequenceBytes;
    return { tokens: Math.floor(concurrency * maxModelLen), blocks: null, concurrency };
  }
  const blocks = Math.floor(poolBytes / kvOf(a, device, request, 1, blockSize));
  return {
    tokens: blocks * blockSize,
    blocks,
    concurrency: blocks / Math.ceil(maxModelLen / blockSize),
  };
}
