import { gpuSheet } from '../../hardware/gpu-peaks.js';
import type { Architecture } from '../../llm/architecture.js';
import { requestOfArguments } from '../../llm/memory-engine-args.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { memoryEngines, type MemoryRequest } from '../../llm/memory-request.js';
import { InferscopeError } from '../../model/errors.js';
import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import { workloadModel } from '../model-work.js';
import type { KvPool } from './kv-pool.js';

export interface ExpectedFacts {
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
  const known = workloadModel(workload);
  if (!('architecture' in known)) return null;
  const name = workload.engine.name.toLowerCase();
  const engine = memoryEngines.find((one) => name.startsWith(one)) ?? 'transformers';
  const { batch_size, input_len, output_len, gpu_memory_utilization, max_model_len } = plan.config;
  const first = plan.gpus.find(({ gpu }) => gpu === gpus[0]);
  const sheet = first?.name ? gpuSheet(first.name) : null;
  const onCpu = gpus.length === 0 && plan.where !== 'url';
  const request: MemoryRequest = {
    engine,
    batchSize: batch_size,
    inputLen: input_len,
    outputLen: output_len,
    storage: known.storage,
    parallel: { tensor: workload.tensor_parallel_size },
    device: onCpu ? 'cpu' : 'gpu',
    gpu: first
      ? { name: first.name, totalBytes: first.total_bytes, architecture: sheet?.architecture ?? null }
      : null,
    loading: workload.model?.weights === 'random' ? 'random' : 'checkpoint',
    // The engine wrapper makes an LLM of its own; what a URL answers is a server.
    usage: plan.where === 'url' ? 'server' : 'library',
    engineVersion: workload.engine.version ?? null,
    ...(gpu_memory_utilization === null ? {} : { gpuMemoryUtilization: gpu_memory_utilization }),
    ...(max_model_len === null ? {} : { maxModelLen: max_model_len }),
    ...requestOfArguments(engine, workload.engine.options),
  };
  try {
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
 * What VLLM_CPU_KVCACHE_SPACE set, which only the log of a build for CPUs tells: `Explicitly set (1.0/23.54) GiB for KV
 * cache`. A pool that vLLM chose itself (`Auto set`) is a measurement, and none of the calculator's.
 */
function givenPool(log: VllmLogFacts | null): number | null {
  const told = log?.ranks
    .map(({ kv_cache }) => kv_cache)
    .find((fact) => fact?.line.includes('Explicitly set'));
  return told?.value ?? null;
}

/** A server was given its pool when it was started: bytes of each device, or tokens. */
function servedPool({ kvBytesPerToken }: MemoryEstimate, pool: KvPool | null): number | null {
  if (pool === null) return null;
  return pool.bytes ?? (pool.tokens === null ? null : pool.tokens * kvBytesPerToken);
}
