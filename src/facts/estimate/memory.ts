import type { Architecture } from '../../llm/architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { largestFit, largestModelLen } from '../../llm/memory-fit.js';
import type { HeaderBytes, MemoryRequest, Parallelism, MemoryEngine } from '../../llm/memory-request.js';
import { quantizedWeights, type SchemeName } from '../../llm/quantization.js';
import type { Storage } from '../../llm/storage.js';
import type { EstimateMemory, EstimatePoint } from '../../model/documents/estimate-memory.js';
import { bytesPerElement, type DType } from '../../model/dtype.js';
import { checkGrid } from '../../model/grid.js';
import { InferscopeError } from '../../model/errors.js';
import type { KnownGpu } from './known-gpu.js';
import type { HeaderWeights, SizedModel } from '../../llm/model-files.js';

export interface EstimateOptions {
  layers?: boolean;
  batchSize: number[];
  inputLen: number[];
  outputLen: number[];
  contextLen?: number[];
  phase: 'prefill' | 'decode';
  dtype?: DType;
  quantization?: SchemeName;
  kvCacheDtype?: DType | null;
  tensorParallelSize: number;
  pipelineParallelSize: number;
  expertParallelSize: number;
  gpuMemoryUtilization?: number;
  engine: MemoryEngine;
  maxModelLen?: number;
}

/** Maximum combinations of batch and lengths; more are probably a typing error. */
const maxPoints = 400;

export function memoryOf(
  architecture: Architecture,
  storage: Storage,
  model: SizedModel,
  gpu: KnownGpu | null,
  options: EstimateOptions,
): EstimateMemory {
  const request = requestOf(storage, model, gpu, options);
  const points = shapes(options).map((shape) => pointOf(architecture, { ...request, ...shape }));
  const { parallel, maxModelLen, gpuMemoryUtilization } = points[0]!.estimate.request;
  return {
    engine: options.engine,
    gpu: gpu && { name: gpu.name, total_bytes: gpu.totalBytes, source: gpu.source },
    gpu_memory_utilization: options.engine === 'vllm' ? gpuMemoryUtilization : null,
    max_model_len: maxModelLen,
    tensor_parallel_size: parallel.tensor,
    pipeline_parallel_size: parallel.pipeline,
    expert_parallel_size: parallel.expert,
    gpu_count: points[0]!.estimate.gpus.length,
    kv_cache_bytes_per_token_gpu: points[0]!.estimate.kvBytesPerToken,
    points: points.map(({ point }) => point),
  };
}

function requestOf(
  storage: Storage,
  model: SizedModel,
  gpu: KnownGpu | null,
  options: EstimateOptions,
): Omit<MemoryRequest, 'batchSize' | 'inputLen' | 'outputLen'> {
  return {
    engine: options.engine,
    storage,
    headerWeights: headerBytes(model.weights, storage, options),
    parallel: {
      tensor: options.tensorParallelSize,
      pipeline: options.pipelineParallelSize,
      expert: options.expertParallelSize,
    },
    gpu,
    maxModelLen: options.maxModelLen ?? null,
    ...(options.gpuMemoryUtilization === undefined
      ? {}
      : { gpuMemoryUtilization: options.gpuMemoryUtilization }),
  };
}

/** The file's bytes, or its parameters in the dtype that they are loaded as. */
function headerBytes(
  weights: HeaderWeights | null,
  storage: Storage,
  { dtype, quantization }: EstimateOptions,
): HeaderBytes | null {
  if (weights === null || quantization !== undefined) return null;
  const loadDtype = storage.weights.rest;
  const width = bytesPerElement[loadDtype];
  if (weights.parameters === null || weights.format === 'gguf') {
    // Quantized files are loaded unchanged; another dtype is another model.
    return dtype === undefined ? { bytes: weights.bytes, source: weights.source } : null;
  }
  const bytes = weights.parameters * width;
  const unchanged = bytes === weights.bytes;
  return {
    bytes,
    source: unchanged ? weights.source : `parameters of the ${weights.source}, loaded in ${loadDtype}`,
  };
}

type Shape = Pick<MemoryRequest, 'batchSize' | 'inputLen' | 'outputLen'>;

function shapes({ batchSize, inputLen, outputLen, contextLen }: EstimateOptions): Shape[] {
  checkGrid(
    {
      '--batch-size': batchSize.length,
      ...(contextLen
        ? { '--context-len': contextLen.length }
        : { '--input-len': inputLen.length, '--output-len': outputLen.length }),
    },
    'combinations of batch and lengths',
    maxPoints,
  );
  const lengths =
    contextLen?.map((tokens) => ({ inputLen: tokens, outputLen: 0 })) ??
    inputLen.flatMap((input) => outputLen.map((output) => ({ inputLen: input, outputLen: output })));
  return batchSize.flatMap((batch) => lengths.map((length) => ({ batchSize: batch, ...length })));
}

function pointOf(
  architecture: Architecture,
  request: MemoryRequest,
): { point: EstimatePoint; estimate: MemoryEstimate } {
  const estimate = estimateMemory(architecture, request);
  const largest = largestFit(architecture, request);
  return {
    estimate,
    point: {
      batch_size: request.batchSize,
      input_len: request.inputLen,
      output_len: request.outputLen,
      lines: estimate.lines.map(({ component, gpuBytes, bytes, formula, confidence }) => ({
        component,
        gpu_bytes: gpuBytes,
        bytes,
        formula,
        confidence,
      })),
      gpus: estimate.gpus.map(({ gpu, pipelineRank, bytes, neededBytes }) => ({
        gpu,
        pipeline_rank: pipelineRank,
        bytes,
        needed_bytes: neededBytes,
      })),
      total_bytes: estimate.totalBytes,
      largest_gpu_bytes: estimate.largestGpuBytes,
      needed_gpu_bytes: estimate.neededGpuBytes,
      peak: estimate.peak,
      kv_needed_bytes: estimate.kvNeededBytes,
      kv_pool: estimate.kvPool,
      fits: estimate.fits,
      largest: {
        context_tokens: largest.contextTokens,
        batch_size: largest.batchSize,
        concurrency: largest.concurrency,
      },
      would_fit: estimate.fits === false ? changesThatFit(architecture, request) : [],
    },
  };
}

/** Single changes that make the model fit: a shorter maximum sequence, KV cache or weights in fewer bytes, or more GPUs. */
function changesThatFit(architecture: Architecture, request: MemoryRequest): EstimatePoint['would_fit'] {
  const { storage, parallel } = request;
  const quantized = (scheme: SchemeName): Partial<MemoryRequest> => ({
    storage: { ...storage, weights: quantizedWeights(scheme, storage.activations) },
    headerWeights: null,
  });
  const tensor = (size: number): Partial<MemoryRequest> => ({
    parallel: { ...parallel, tensor: size } satisfies Partial<Parallelism>,
  });
  const modelLen = request.engine === 'vllm' ? largestModelLen(architecture, request) : 0;
  const changes: [string, Partial<MemoryRequest>][] = [
    ...(modelLen > 0
      ? [
          [`--max-model-len ${modelLen}`, { maxModelLen: modelLen }] satisfies [
            string,
            Partial<MemoryRequest>,
          ],
        ]
      : []),
    ['--kv-cache-dtype fp8', { storage: { ...storage, kvCache: 'float8' } }],
    ['--quantization fp8-row', quantized('fp8-row')],
    ['--quantization awq-int4-g128', quantized('awq-int4-g128')],
    ...[2, 4, 8].map((size): [string, Partial<MemoryRequest>] => [
      `--tensor-parallel-size ${size}`,
      tensor(size),
    ]),
  ];
  return changes.flatMap(([change, to]) => {
    try {
      const changed = estimateMemory(architecture, { ...request, ...to });
      return changed.fits === true ? [{ change, needed_gpu_bytes: changed.neededGpuBytes }] : [];
    } catch (error) {
      // A group size that does not divide the heads is not a valid change.
      if (error instanceof InferscopeError) return [];
      throw error;
    }
  });
}
