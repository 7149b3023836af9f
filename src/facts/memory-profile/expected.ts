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

/** The calculator's figures for the same run; null where the model's arithmetic is not known. */
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
  const first = plan.gpus.find(({ gpu }) => gpu === gpus[0]);
  const onCpu = gpus.length === 0 && plan.where !== 'url';
  const { quantization, kv_cache_dtype } = plan.config;
  const recorded = log?.kv_cache_dtype?.value ?? workload.engine.options['kv_cache_dtype'];
  try {
    const request = requestOfRun({
      engine,
      architecture,
      config: model.config,
      dtypes: [log?.dtype?.value, model.dtype],
      quantization: model.quantization ?? quantization,
      kvCacheDtype: kv_cache_dtype ?? (typeof recorded === 'string' ? recorded : null),
      weightBytes: model.weight_bytes,
      batchSize: batch_size,
      inputLen: input_len,
      outputLen: output_len,
      tensorParallelSize: workload.tensor_parallel_size,
      gpu: first ? { name: first.name, totalBytes: first.total_bytes } : null,
      onCpu,
      randomWeights: model.weights === 'random',
      // The engine wrapper makes an LLM of its own; what a URL answers is a server.
      usage: plan.where === 'url' ? 'server' : 'library',
      engineVersion: workload.engine.version,
      gpuMemoryUtilization: gpu_memory_utilization,
      maxModelLen: max_model_len,
      engineArgs: workload.engine.options,
    });
    const made = estimateMemory(architecture, request);
    if (engine !== 'vllm') return made;
    const given =
      request.kvPoolBytes ?? givenPool(log) ?? (plan.where === 'url' ? servedPool(made, pool) : null);
    if (given !== null) return estimateMemory(architecture, { ...request, kvPoolBytes: given });
    // A share of the main memory that was free when it started: the batch's own cache is no figure of it.
    return onCpu ? { ...made, lines: made.lines.filter(({ component }) => component !== 'kv_cache') } : made;
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}

/**
 * What VLLM_CPU_KVCACHE_SPACE set, which only the log of a CPU build shows: `Explicitly set (1.0/23.54) GiB for KV
 * cache`. A pool that vLLM chose itself (`Auto set`) is a measurement, and none of the calculator's.
 */
function givenPool(log: VllmLogFacts | null): number | null {
  const recorded = log?.ranks
    .map(({ kv_cache }) => kv_cache)
    .find((fact) => fact?.line.includes('Explicitly set'));
  return recorded?.value ?? null;
}

/** A server was given its pool when it was started: bytes of each device, or tokens. */
function servedPool({ kvBytesPerToken }: MemoryEstimate, pool: KvPool | null): number | null {
  if (pool === null) return null;
  return pool.bytes ?? (pool.tokens === null ? null : pool.tokens * kvBytesPerToken);
}
