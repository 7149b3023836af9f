import type { Architecture } from '../../llm/architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { knownEngine } from '../../llm/memory-request.js';
import { InferscopeError } from '../../model/errors.js';
import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import type { KvPool } from './kv-pool.js';
import { requestOfRun } from './run-request.js';

interface ExpectedFacts {
  architecture: Architecture | null;
  gpus: readonly number[];
  log: VllmLogFacts | null;
  pool: KvPool | null;
}

/** The calculator's figures for the same run; null if it cannot compute the model. */
export function expectedMemory(
  workload: Workload | null,
  plan: MemoryPlan,
  { architecture, gpus, log, pool }: ExpectedFacts,
): MemoryEstimate | null {
  if (!workload || !architecture) return null;
  const { model } = workload;
  if (!model) return null;
  const engine = knownEngine(workload.engine.name) ?? 'transformers';
  const { batch_size, input_len, output_len, gpu_memory_utilization, max_model_len } = plan.config;
  const firstGpu = plan.gpus.find(({ gpu }) => gpu === gpus[0]);
  const onCpu = gpus.length === 0 && plan.where !== 'url';
  const { quantization, kv_cache_dtype } = plan.config;
  const kvCacheDtype = log?.kv_cache_dtype?.value ?? workload.engine.options['kv_cache_dtype'];
  try {
    const request = requestOfRun({
      engine,
      architecture,
      config: model.config,
      dtypes: [log?.dtype?.value, model.dtype],
      quantization: model.quantization ?? quantization,
      kvCacheDtype: kv_cache_dtype ?? (typeof kvCacheDtype === 'string' ? kvCacheDtype : null),
      weightBytes: model.weight_bytes,
      batchSize: batch_size,
      inputLen: input_len,
      outputLen: output_len,
      tensorParallelSize: workload.tensor_parallel_size,
      gpu: firstGpu ? { name: firstGpu.name, totalBytes: firstGpu.total_bytes } : null,
      onCpu,
      randomWeights: model.weights === 'random',
      // The engine wrapper runs vLLM as a library; a URL is a server.
      usage: plan.where === 'url' ? 'server' : 'library',
      engineVersion: workload.engine.version,
      gpuMemoryUtilization: gpu_memory_utilization,
      maxModelLen: max_model_len,
      engineArgs: workload.engine.options,
    });
    const estimate = estimateMemory(architecture, request);
    if (engine !== 'vllm') return estimate;
    const poolBytes =
      request.kvPoolBytes ??
      explicitPoolBytes(log) ??
      (plan.where === 'url' ? serverPoolBytes(estimate, pool) : null);
    if (poolBytes !== null) return estimateMemory(architecture, { ...request, kvPoolBytes: poolBytes });
    // The pool is a share of the main memory free at start, which the calculator does not know.
    return onCpu
      ? { ...estimate, lines: estimate.lines.filter(({ component }) => component !== 'kv_cache') }
      : estimate;
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}

/**
 * KV pool set by VLLM_CPU_KVCACHE_SPACE, bytes. Only the log of a CPU build shows it: `Explicitly set (1.0/23.54) GiB
 * for KV cache`. A pool that vLLM chose (`Auto set`) depends on the machine, so the calculator cannot know it.
 */
function explicitPoolBytes(log: VllmLogFacts | null): number | null {
  const fact = log?.ranks
    .map(({ kv_cache }) => kv_cache)
    .find((fact) => fact?.line.includes('Explicitly set'));
  return fact?.value ?? null;
}

/** KV pool that a server was started with: bytes per device, or tokens. */
function serverPoolBytes({ kvBytesPerToken }: MemoryEstimate, pool: KvPool | null): number | null {
  if (pool === null) return null;
  return pool.bytes ?? (pool.tokens === null ? null : pool.tokens * kvBytesPerToken);
}
