import type { Architecture } from '../../llm/architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { memoryEngines } from '../../llm/memory-request.js';
import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { InferscopeError } from '../../model/errors.js';
import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import { workloadModel } from '../model-work.js';

/** The calculator's figures for the same run; null where the model's arithmetic is not known. */
export function expectedMemory(
  workload: Workload | null,
  architecture: Architecture | null,
  plan: MemoryPlan,
  gpus: readonly number[],
): MemoryEstimate | null {
  if (!workload || !architecture) return null;
  const known = workloadModel(workload);
  if (!('architecture' in known)) return null;
  const engine = memoryEngines.find((one) => workload.engine.name.startsWith(one)) ?? 'transformers';
  const { batch_size, input_len, output_len, gpu_memory_utilization, max_model_len } = plan.config;
  const first = plan.gpus.find(({ gpu }) => gpu === gpus[0]);
  const sheet = first?.name ? gpuSheet(first.name) : null;
  try {
    return estimateMemory(architecture, {
      engine,
      batchSize: batch_size,
      inputLen: input_len,
      outputLen: output_len,
      storage: known.storage,
      parallel: { tensor: workload.tensor_parallel_size },
      device: gpus.length === 0 && plan.where !== 'url' ? 'cpu' : 'gpu',
      gpu: first
        ? { name: first.name, totalBytes: first.total_bytes, architecture: sheet?.architecture ?? null }
        : null,
      attention: workload.engine.options['attn'] === 'eager' ? 'eager' : 'fused',
      cache: ['compile', 'cudagraph'].includes(String(workload.engine.options['mode']))
        ? 'static'
        : 'growing',
      loading: workload.model?.weights === 'random' ? 'random' : 'checkpoint',
      cudaGraphs: engine === 'vllm' || workload.engine.options['mode'] === 'cudagraph',
      ...(gpu_memory_utilization === null ? {} : { gpuMemoryUtilization: gpu_memory_utilization }),
      ...(max_model_len === null ? {} : { maxModelLen: max_model_len }),
    });
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}
