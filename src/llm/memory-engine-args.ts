import type { MemoryEngine, MemoryRequest } from './memory-request.js';

type ArgumentOptions = Pick<
  MemoryRequest,
  | 'attention'
  | 'cache'
  | 'cudaGraphs'
  | 'customAllReduce'
  | 'gpuMemoryUtilization'
  | 'maxModelLen'
  | 'maxNumBatchedTokens'
  | 'maxNumSeqs'
  | 'blockSize'
  | 'kvPoolBytes'
>;

/**
 * The memory options of an engine's own arguments (`--engine-arg`, stored in the session; numbers and booleans may be
 * text). Missing ones use the engine's defaults.
 */
export function requestOfArguments(
  engine: MemoryEngine,
  args: Readonly<Record<string, unknown>>,
): ArgumentOptions {
  const mode = String(args['mode'] ?? 'eager');
  const vllm = engine === 'vllm';
  return {
    attention: args['attn'] === 'eager' ? 'eager' : 'fused',
    cache: mode === 'compile' || mode === 'cudagraph' ? 'static' : 'growing',
    cudaGraphs: vllm ? !isTrue(args['enforce_eager']) : mode === 'cudagraph',
    ...(vllm
      ? {
          customAllReduce: !isTrue(args['disable_custom_all_reduce']),
          ...countIn(args, 'gpu_memory_utilization', 'gpuMemoryUtilization'),
          ...countIn(args, 'max_model_len', 'maxModelLen'),
          ...countIn(args, 'max_num_batched_tokens', 'maxNumBatchedTokens'),
          ...countIn(args, 'max_num_seqs', 'maxNumSeqs'),
          ...countIn(args, 'block_size', 'blockSize'),
          // "Size of KV Cache per GPU in bytes" (vllm/config/cache.py), which overrides the share of the GPU.
          ...countIn(args, 'kv_cache_memory_bytes', 'kvPoolBytes'),
        }
      : {}),
  };
}

const isTrue = (value: unknown): boolean => value === true || String(value).toLowerCase() === 'true';

function countIn<Name extends keyof ArgumentOptions>(
  args: Readonly<Record<string, unknown>>,
  argument: string,
  name: Name,
): { [key in Name]?: number } {
  const value = args[argument];
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof count === 'number' && Number.isFinite(count) && count > 0
    ? ({ [name]: count } as { [key in Name]?: number })
    : {};
}
