import type { PreparedEngine } from '../../model/engine.js';
import type { BenchVerb } from './bench-command.js';

type NotMeasured = PreparedEngine['notMeasured'];

const notReported = (text: string): NotMeasured[string] => ({ code: 'not_reported', text });

/** Figures that are missing when stepping the engine, and why. */
export function missingOffline(device: string): NotMeasured {
  const steps = 'its steps are timed on the host, around LLMEngine.step()';
  if (device === 'cpu') {
    const none = 'this vLLM computes on the CPU: there is no device work to separate from host work';
    return {
      device_time: notReported(`${none}; ${steps}`),
      device_work: notReported(none),
      idle_share: notReported(none),
      memory: notReported(
        'vLLM reserves its KV cache in main memory before the first point; kv_cache_usage reports what a point needs of it, inferscope memory the rest',
      ),
    };
  }
  return {
    device_time: notReported(`vLLM sets no device events; ${steps}`),
    device_work: notReported(
      'vLLM runs in separate processes; `inferscope run --evaluator nsys` shows its kernels',
    ),
    idle_share: notReported('no kernels are known; `inferscope run --evaluator nsys` shows them'),
    memory: notReported(
      'vLLM reserves its share of the device (gpu_memory_utilization) before the first point; kv_cache_usage reports what a point needs of it',
    ),
  };
}

/** Figures that vLLM's own commands do not report. */
export function missingFromBench(verb: BenchVerb, device: string): NotMeasured {
  const perBatch = `vllm bench ${verb} reports seconds per batch only`;
  return {
    ttft: notReported(perBatch),
    tpot: notReported(perBatch),
    itl: notReported(perBatch),
    stages: notReported(perBatch),
    ...missingOffline(device),
    kv_occupancy: notReported(perBatch),
    moments: notReported(`${perBatch}, not when: repeats are laid end to end up to the end of its process`),
    sampling: notReported(
      `vllm bench ${verb} samples at temperature 1, not greedily, and repeats one set of prompts`,
    ),
    ...(verb === 'throughput'
      ? {
          warmup: notReported(
            'vllm bench throughput runs its prompts once, without warm-up: one repeat per launch',
          ),
        }
      : {}),
  };
}
