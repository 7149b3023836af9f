import type { Architecture } from './architecture.js';
import type { Storage } from './storage.js';

export const memoryEngines = ['transformers', 'vllm', 'onnx'] as const;
export type MemoryEngine = (typeof memoryEngines)[number];

/** The engine by a name from a launch, a server or another tool: 'onnxruntime', 'vLLM'. Null for other engines. */
export function knownEngine(name: string | null | undefined): MemoryEngine | null {
  const lower = name?.toLowerCase() ?? '';
  return memoryEngines.find((memoryEngine) => lower.includes(memoryEngine)) ?? null;
}

/** Sizes of the groups that share the model. */
export interface Parallelism {
  tensor: number;
  pipeline: number;
  /** Devices that the experts are spread over; 1: each expert is split like other matrices. */
  expert: number;
}

export interface GpuRoom {
  /** As the driver reports it; null if unknown. */
  name: string | null;
  /** Memory of one GPU as the driver reports it; null if unknown. */
  totalBytes: number | null;
  architecture?: string | null;
}

/** Bytes of the weights according to a file's header, and the file. */
export interface HeaderBytes {
  bytes: number;
  source: string;
}

/** The run to estimate. Everything except batch, lengths and storage has a default. */
export interface MemoryRequest {
  engine?: MemoryEngine;
  batchSize: number;
  /** Prompt tokens per sequence. */
  inputLen: number;
  /** Tokens generated per sequence; 0: no decode. */
  outputLen: number;
  storage: Storage;
  /** Weights from a safetensors or GGUF header, used instead of computed ones. */
  headerWeights?: HeaderBytes | null;
  parallel?: Partial<Parallelism>;
  gpu?: GpuRoom | null;
  /** vLLM: its share of a GPU. */
  gpuMemoryUtilization?: number;
  /** vLLM: longest sequence; null: the model's positions. */
  maxModelLen?: number | null;
  maxNumBatchedTokens?: number;
  maxNumSeqs?: number;
  /** vLLM: the kind of use that its defaults depend on (UsageContext): its class LLM, or a server (default). */
  usage?: 'library' | 'server';
  blockSize?: number;
  /** Version of the engine; null: the one that the estimate was last checked with. */
  engineVersion?: string | null;
  /** vLLM: bytes of the KV pool, if a log states them; its tokens are computed from this. */
  kvPoolBytes?: number | null;
  /** fused: scores are not stored (SDPA, flash attention). */
  attention?: 'fused' | 'eager';
  /** Windowed layers store only their window. Default: as the engine does. */
  hybridCache?: boolean;
  cudaGraphs?: boolean;
  /** vLLM: the all-reduces of a step use vLLM's own kernels (the default on GPUs with peer access) instead of NCCL. */
  customAllReduce?: boolean;
  /** How torch's reserve is computed. simulated: allocation by allocation (tens of ms); share: a fitted share. */
  reserve?: 'simulated' | 'share';
  /** random: weights are made on the GPU, where a tied lm_head is a separate matrix until it is tied. */
  loading?: 'checkpoint' | 'random';
  /** transformers only. cpu: no context, workspace or reserve; the sum includes Python with torch. */
  device?: 'gpu' | 'cpu';
  /** growing: transformers' default cache, copied at each step; static: one of full length. */
  cache?: 'growing' | 'static';
}

export interface ResolvedRequest extends Required<Omit<MemoryRequest, 'parallel' | 'maxModelLen'>> {
  parallel: Parallelism;
  maxModelLen: number;
}

/** Prompt and output together. */
function contextOf({ inputLen, outputLen }: Pick<MemoryRequest, 'inputLen' | 'outputLen'>): number {
  return inputLen + outputLen;
}

/**
 * The request with its defaults. vLLM's defaults are those of 0.26 (get_batch_defaults, vllm/engine/arg_utils.py): at
 * most 256 sequences and 2048 tokens per batch, for its class LLM 8192; on GPUs of 70 GiB and more except A100s 1024
 * and 8192, for its class LLM 16384; 0.9 of the GPU, blocks of 16 tokens, graphs on.
 */
export function withDefaults(a: Architecture, request: MemoryRequest): ResolvedRequest {
  const engine = request.engine ?? 'transformers';
  const context = contextOf(request);
  const { totalBytes, name } = request.gpu ?? { totalBytes: null, name: null };
  const isLarge = (totalBytes ?? 0) >= 70 * 2 ** 30 && !name?.toLowerCase().includes('a100');
  const usage = request.usage ?? 'server';
  const batched = usage === 'library' ? 8192 : 2048;
  const longest = request.maxModelLen ?? a.maxPositions ?? context;
  return {
    ...request,
    engine,
    headerWeights: request.headerWeights ?? null,
    parallel: { tensor: 1, pipeline: 1, expert: 1, ...request.parallel },
    gpu: request.gpu ?? null,
    gpuMemoryUtilization: request.gpuMemoryUtilization ?? 0.9,
    maxModelLen: longest,
    maxNumBatchedTokens:
      request.maxNumBatchedTokens ?? (isLarge ? (usage === 'library' ? 16_384 : 8192) : batched),
    maxNumSeqs: request.maxNumSeqs ?? (isLarge ? 1024 : 256),
    usage,
    engineVersion: request.engineVersion ?? null,
    blockSize: request.blockSize ?? 16,
    kvPoolBytes: request.kvPoolBytes ?? null,
    attention: request.attention ?? 'fused',
    hybridCache: request.hybridCache ?? engine !== 'onnx',
    cudaGraphs: request.cudaGraphs ?? engine === 'vllm',
    customAllReduce: request.customAllReduce ?? true,
    reserve: request.reserve ?? 'simulated',
    loading: request.loading ?? 'checkpoint',
    device: request.device ?? 'gpu',
    cache: request.cache ?? 'growing',
  };
}
