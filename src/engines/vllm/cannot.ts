import type { PreparedEngine } from '../../model/engine.js';
import type { BenchVerb } from './bench-command.js';

type Cannot = PreparedEngine['cannot'];

const own = (text: string): Cannot[string] => ({ code: 'not_told', text });

/** Figures that stepping the engine does not give, and why. */
export function cannotOffline(device: string): Cannot {
  const steps = 'its steps are timed on the host, around LLMEngine.step()';
  if (device === 'cpu') {
    const none = 'this vLLM computes on the CPU: there is no device work to separate from host work';
    return {
      device_time: own(`${none}; ${steps}`),
      device_work: own(none),
      idle_share: own(none),
      memory: own(
        'vLLM reserves its KV cache in main memory before the first point; kv_cache_usage reports what a point needs of it, inferscope memory the rest',
      ),
    };
  }
  return {
    device_time: own(`vLLM sets no device events; ${steps}`),
    device_work: own(
      'vLLM runs in processes of its own; `inferscope run --evaluator nsys` shows its kernels',
    ),
    idle_share: own('no kernels are known; `inferscope run --evaluator nsys` shows them'),
    memory: own(
      'vLLM reserves its share of the device (gpu_memory_utilization) before the first point; kv_cache_usage reports what a point needs of it',
    ),
  };
}

/** Figures that its own commands do not report. */
export function cannotBench(verb: BenchVerb, device: string): Cannot {
  const perBatch = `vllm bench ${verb} reports seconds per batch only`;
  return {
    ttft: own(perBatch),
    tpot: own(perBatch),
    itl: own(perBatch),
    stages: own(perBatch),
    ...cannotOffline(device),
    kv_occupancy: own(perBatch),
    moments: own(`${perBatch}, not when: repeats are laid end to end up to the end of its process`),
    sampling: own(
      `vllm bench ${verb} samples at temperature 1, not greedily, and repeats one set of prompts`,
    ),
    ...(verb === 'throughput'
      ? { warmup: own('vllm bench throughput runs its prompts once, without warm-up: one repeat a launch') }
      : {}),
  };
}
