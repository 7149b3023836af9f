import { estimatedComponents, type EstimatedComponent } from '../model/memory-components.js';
import type { Architecture } from './architecture.js';
import { checkEncoderDecoder } from './memory-encoder-decoder.js';
import { kvBytesPerToken } from './kv-cache.js';
import { onnxPlace } from './memory-onnx.js';
import type { Confidence, Part, Place } from './memory-place.js';
import { withDefaults, type MemoryRequest, type ResolvedRequest } from './memory-request.js';
import { devices, type Device } from './memory-shards.js';
import { transformersPlace } from './memory-transformers.js';
import { poolCapacity, vllmPlace, type PoolCapacity } from './memory-vllm.js';
import { weightParts } from './memory-weights.js';

/** One component: bytes per GPU, in order, and of all GPUs together. */
interface MemoryLine {
  component: EstimatedComponent;
  gpuBytes: number[];
  bytes: number;
  formula: string;
  confidence: Confidence;
}

interface GpuEstimate {
  gpu: number;
  pipelineRank: number;
  /** Memory at the peak; with vLLM and a known GPU it includes the whole KV pool. */
  bytes: number;
  /** Minimum memory; with vLLM the batch's cache replaces the pool. */
  neededBytes: number;
}

export interface MemoryEstimate {
  engine: ResolvedRequest['engine'];
  /** Components above 0 bytes, each once. */
  lines: MemoryLine[];
  gpus: GpuEstimate[];
  /** Sum over all GPUs. */
  totalBytes: number;
  /** Bytes of the GPU with the most. */
  largestGpuBytes: number;
  neededGpuBytes: number;
  /** Capacity of a GPU; null if its size is unknown. */
  capacityBytes: number | null;
  /** Whether the engine starts as requested and holds the batch; null if the GPU's size is unknown. */
  fits: boolean | null;
  /** Whether the batch fits, if vLLM is started with a max_model_len that its pool holds. */
  holdsBatch: boolean | null;
  /** Stage of the peak of the GPU with the most. */
  peak: Place['peak'];
  /** Bytes that a token of a sequence adds to the GPU with the most. */
  kvBytesPerToken: number;
  /** The batch's cache at its full length on the GPU with the most. */
  kvNeededBytes: number;
  /** vLLM's pool if its size is known, limited by the smallest GPU. */
  kvPool: PoolCapacity | null;
  request: ResolvedRequest;
}

const places = { transformers: transformersPlace, vllm: vllmPlace, onnx: onnxPlace } as const;

/**
 * Memory of a run at its peak, by component and GPU. Pure arithmetic: docs/concepts/llm-arithmetic.md has every formula
 * with its source and validation, memory-constants.ts every constant.
 * @throws E_USAGE for device groups that do not divide the model
 */
export function estimateMemory(a: Architecture, request: MemoryRequest): MemoryEstimate {
  return memoryEstimator(a, request)({});
}

type Shape = Partial<Pick<MemoryRequest, 'batchSize' | 'inputLen' | 'outputLen' | 'maxModelLen'>>;

/** `estimateMemory` for many shapes of one request; parts that do not depend on the shape are computed once. */
export function memoryEstimator(a: Architecture, request: MemoryRequest): (shape: Shape) => MemoryEstimate {
  const first = withDefaults(a, request);
  checkEncoderDecoder(a, first);
  const group = devices(a, first.parallel, first.engine);
  const weights = weightParts(a, group, first);
  return (shape) => estimateShape(a, group, weights, withDefaults(a, { ...request, ...shape }));
}

function estimateShape(
  a: Architecture,
  group: readonly Device[],
  weights: readonly Part[],
  request: ResolvedRequest,
): MemoryEstimate {
  const byRank = new Map<number, Place>();
  const placesByGpu = group.map((device, gpu) => {
    const place =
      byRank.get(device.pipelineRank) ?? places[request.engine](a, device, request, weights[gpu]!);
    byRank.set(device.pipelineRank, place);
    return place;
  });
  const gpus = placesByGpu.map((place, gpu): GpuEstimate => {
    const bytes = bytesOf(place);
    const kv = place.parts.kv_cache?.bytes ?? 0;
    return { gpu, pipelineRank: group[gpu]!.pipelineRank, bytes, neededBytes: bytes - kv + place.kvNeeded };
  });
  const fullest = gpus.reduce((best, gpu) => (gpu.neededBytes > best.neededBytes ? gpu : best));
  const capacityBytes = request.gpu?.totalBytes ?? null;
  const kvPool = poolOf(a, group, placesByGpu, request);
  const holdsBatch =
    capacityBytes === null ? null : placesByGpu.every((place) => fitsOn(place, request, capacityBytes));
  return {
    engine: request.engine,
    lines: linesOf(placesByGpu),
    gpus,
    totalBytes: gpus.reduce((sum, { bytes }) => sum + bytes, 0),
    largestGpuBytes: Math.max(...gpus.map(({ bytes }) => bytes)),
    neededGpuBytes: fullest.neededBytes,
    capacityBytes,
    // vLLM refuses to start with a pool below one sequence of max_model_len.
    fits: holdsBatch && (kvPool === null || kvPool.concurrency >= 1),
    holdsBatch,
    peak: placesByGpu[fullest.gpu]!.peak,
    kvBytesPerToken: Math.max(
      ...group.map(({ layers }) =>
        kvBytesPerToken({ ...a, layers }, request.storage.kvCache, request.parallel.tensor),
      ),
    ),
    kvNeededBytes: Math.max(...placesByGpu.map(({ kvNeeded }) => kvNeeded)),
    kvPool,
    request,
  };
}

function bytesOf(place: Place): number {
  return estimatedComponents.reduce((sum, component) => sum + (place.parts[component]?.bytes ?? 0), 0);
}

function linesOf(placesByGpu: readonly Place[]): MemoryLine[] {
  return estimatedComponents.flatMap((component): MemoryLine[] => {
    const parts = placesByGpu.map((place) => place.parts[component]);
    const gpuBytes = parts.map((part) => part?.bytes ?? 0);
    const bytes = gpuBytes.reduce((sum, onGpu) => sum + onGpu, 0);
    const first = parts.find((part): part is Part => part !== undefined);
    if (!first || bytes === 0) return [];
    return [{ component, gpuBytes, bytes, formula: first.formula, confidence: first.confidence }];
  });
}

/**
 * vLLM's share contains weights, activations, non-torch memory and cache. Context, graphs and the runner's tensors are
 * outside.
 */
function fitsOn(place: Place, request: ResolvedRequest, total: number): boolean {
  const kv = place.parts.kv_cache?.bytes ?? 0;
  const needed = bytesOf(place) - kv + place.kvNeeded;
  if (request.engine !== 'vllm') return needed <= total;
  const outside = (['cuda_graphs', 'cuda_context', 'allocator_reserve'] as const)
    .map((component) => place.parts[component]?.bytes ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);
  return needed - outside <= total * request.gpuMemoryUtilization && needed <= total;
}

function poolOf(
  a: Architecture,
  group: readonly Device[],
  placesByGpu: readonly Place[],
  request: ResolvedRequest,
): PoolCapacity | null {
  const isSizeKnown = request.kvPoolBytes !== null || request.gpu?.totalBytes;
  if (request.engine !== 'vllm' || !isSizeKnown) return null;
  return group
    .map((device, gpu) => poolCapacity(a, device, request, placesByGpu[gpu]!.parts.kv_cache?.bytes ?? 0))
    .reduce((smallest, pool) => (pool.tokens < smallest.tokens ? pool : smallest));
}
