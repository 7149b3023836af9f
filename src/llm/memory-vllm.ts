import { vllmActivationPeak } from './activations.js';
import type { Architecture, Layer } from './architecture.js';
import {
  byArchitecture,
  cudaContext,
  vllmGraphs,
  vllmNonTorch,
  vllmOnCpu,
  type MemoryConstant,
} from './memory-constants.js';
import { kvFormula, kvOf, sequencesOf, type Part, type Place } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { deviceCount, type Device } from './memory-shards.js';

/**
 * A device of vLLM (of a build for CPUs a worker) after start-up: weights, the activation peak of its profiling run and non-torch memory; the KV pool
 * takes what is left of utilisation × total. Graphs and the context lie outside.
 */
export function vllmPlace(a: Architecture, device: Device, request: ResolvedRequest, weights: Part): Place {
  const { gpu, gpuMemoryUtilization: share, storage, maxNumBatchedTokens, maxNumSeqs, parallel } = request;
  const activations = vllmActivationPeak(
    { ...a, layers: device.kinds.map((layer) => shardedMlp(layer, parallel.tensor)) },
    { activations: storage.activations, maxNumBatchedTokens, maxNumSeqs },
  );
  const nonTorch = deviceCount(parallel) > 1 ? vllmNonTorch.group : vllmNonTorch.single;
  const sequences = sequencesOf(request);
  const tokens = request.inputLen + request.outputLen;
  const kvNeeded = kvOf(a, device, request, sequences, tokens);
  const besides = weights.bytes + activations.bytes + nonTorch.bytes;
  const total = gpu?.totalBytes ?? null;
  const pool =
    request.kvPoolBytes ?? (total === null ? null : Math.max(0, Math.ceil(total * share) - besides));
  return {
    peak: 'start-up',
    kvNeeded,
    parts: {
      model_weights: weights,
      ...(request.device === 'cpu' ? besideOnCpu(deviceCount(parallel)) : besideOnGpu(nonTorch, request)),
      kv_cache:
        pool === null
          ? { bytes: kvNeeded, formula: kvFormula(a, request, sequences, tokens), confidence: 'high' }
          : {
              bytes: pool,
              formula:
                request.kvPoolBytes === null
                  ? `the pool: ${share} × total − weights − activations − non-torch memory`
                  : 'the pool, as it was set or told',
              confidence: request.kvPoolBytes === null ? 'medium' : 'high',
            },
      activations: { bytes: activations.bytes, formula: activations.source, confidence: 'medium' },
    },
  };
}

function besideOnGpu(nonTorch: MemoryConstant, { cudaGraphs, gpu }: ResolvedRequest): Place['parts'] {
  const part = ({ bytes, source, confidence }: MemoryConstant): Part => ({
    bytes,
    formula: source,
    confidence,
  });
  return {
    framework_overhead: part(nonTorch),
    ...(cudaGraphs ? { cuda_graphs: part(vllmGraphs) } : {}),
    cuda_context: part(byArchitecture(cudaContext, gpu?.architecture)),
  };
}

/** In main memory there is no context and no graph, and all its processes are in the sum. */
function besideOnCpu(ranks: number): Place['parts'] {
  const { processesBytes, workerBytes, source, confidence } = vllmOnCpu;
  return { framework_overhead: { bytes: processesBytes / ranks + workerBytes, formula: source, confidence } };
}

function shardedMlp(layer: Layer, tensor: number): Layer {
  const { mlp } = layer;
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
 * Tokens that a KV pool of `poolBytes` on one device holds. With full attention in all layers: whole blocks ×
 * block_size. With windowed layers the pool holds `concurrency` sequences of max_model_len, and tokens are
 * floor(concurrency × max_model_len), as vLLM's log derives them.
 */
export function poolCapacity(
  a: Architecture,
  device: Pick<Device, 'layers'>,
  request: ResolvedRequest,
  poolBytes: number,
): PoolCapacity {
  const { blockSize, maxModelLen } = request;
  const windowed = request.hybridCache && device.layers.some(({ attention }) => attention.window !== null);
  if (windowed) {
    const one = kvOf(a, device, request, 1, Math.ceil(maxModelLen / blockSize) * blockSize);
    const concurrency = poolBytes / one;
    return { tokens: Math.floor(concurrency * maxModelLen), blocks: null, concurrency };
  }
  const blocks = Math.floor(poolBytes / kvOf(a, device, request, 1, blockSize));
  return {
    tokens: blocks * blockSize,
    blocks,
    concurrency: blocks / Math.ceil(maxModelLen / blockSize),
  };
}
