import { InferscopeError } from '../../model/errors.js';
import { traceForksOption } from './nsys-arguments.js';
import type { RunExecution } from './run-options.js';
import { formatBytes, formatQuantity } from '../../vocabulary/format.js';

/** A CUDA context takes more than this; occasional allocations of other programs take less. */
const minBytes = 256 * 2 ** 20;

/**
 * Why a timeline without kernels is a failure: GPU memory was used while the program ran, so a process
 * used the GPU unseen by the profiler. Null if no GPU's memory rose: the program may not need one.
 */
export function unseenKernels(
  execution: Pick<RunExecution, 'execution_id' | 'memory' | 'telemetry' | 'engineProcesses'>,
): InferscopeError | null {
  const gpu = largestIncrease(execution.memory);
  if (gpu === null) return null;
  const busy = execution.telemetry
    .filter(({ scope, metric }) => scope === `gpu${gpu.device}` && metric === 'utilization_percent')
    .reduce((max, { value }) => Math.max(max, value ?? 0), 0);
  const rose = `During the run, memory use of GPU ${gpu.device} rose by ${formatBytes(gpu.bytes)}${busy > 0 ? ` and it was busy up to ${formatQuantity(busy, '%')}` : ''}.`;
  const what = `nsys recorded no kernels, but the program used GPU ${gpu.device}`;
  const forked = `Or trace forked processes, which newer versions of nsys can: --nsys-arg ${traceForksOption}=true`;
  const torch = 'Or record inside each process: --evaluator torch';
  if (execution.engineProcesses.length > 0) {
    return new InferscopeError('E_NO_KERNELS', {
      what,
      why: `${rose} vLLM runs its engine in a separate process (${execution.engineProcesses.join(', ')}), which it forks by default, and nsys sees no CUDA calls of a forked process unless it is asked to.`,
      fix: `${spawnAdvice}\n${forked}\n${torch}`,
    });
  }
  return new InferscopeError('E_NO_KERNELS', {
    what,
    why: `${rose} A process that nsys could not trace used the GPU: forked by a program (CUDA or multiprocessing with fork), in another container, or a server that was already running.`,
    fix: `Start the process that uses the GPU under run, and use spawn instead of fork (Python: multiprocessing.set_start_method("spawn")).
${forked}
${torch}`,
  });
}

/** How to make kernels of vLLM's engine visible to a profiler. */
export const spawnAdvice = `Let vLLM spawn it, with the program code below \`if __name__ == "__main__":\`: export VLLM_WORKER_MULTIPROC_METHOD=spawn
Or run it in the process of the program: export VLLM_ENABLE_V1_MULTIPROCESSING=0`;

/**
 * The GPU with the largest increase of used memory since the program started; null if none increased by more than other programs allocate.
 */
function largestIncrease(memory: RunExecution['memory']): { device: number; bytes: number } | null {
  const spans = new Map<number, { first: number; max: number }>();
  for (const { kind, device, bytes } of memory) {
    if (kind !== 'used' || typeof device !== 'number' || typeof bytes !== 'number') continue;
    const span = spans.get(device);
    if (span) span.max = Math.max(span.max, bytes);
    else spans.set(device, { first: bytes, max: bytes });
  }
  const increases = [...spans].map(([device, { first, max }]) => ({ device, bytes: max - first }));
  const [top] = increases.sort((a, b) => b.bytes - a.bytes);
  return top && top.bytes >= minBytes ? top : null;
}

/** Processes named in vLLM's log: "(EngineCore pid=2524) INFO …" -> "EngineCore pid=2524". */
export function engineProcesses(output: string): string[] {
  const named = output.matchAll(/^\(((?:EngineCore|Worker)\w* pid=\d+)\)/gm);
  return [...new Set([...named].map(([, name]) => name!))];
}
