import { InferscopeError } from '../../model/errors.js';
import type { RunExecution } from './run-options.js';
import { formatBytes } from '../../vocabulary/format.js';

/** A CUDA context alone takes more; other programs allocate less now and then. */
const leastBytes = 256 * 2 ** 20;

/**
 * Why a timeline without a kernel is a failure: the GPU's memory was used while the program ran, so that something
 * computed which the profiler did not see. Null where no GPU's memory rose: the program may need none.
 */
export function unseenKernels(
  execution: Pick<RunExecution, 'execution_id' | 'memory' | 'telemetry' | 'engineProcesses'>,
): InferscopeError | null {
  const used = mostRisen(execution.memory);
  if (used === null) return null;
  const busy = execution.telemetry
    .filter(({ scope, metric }) => scope === `gpu${used.device}` && metric === 'utilization_percent')
    .reduce((most, { value }) => Math.max(most, value ?? 0), 0);
  const rose = `While it ran the memory in use of gpu${used.device} rose by ${formatBytes(used.bytes)}${busy > 0 ? ` and it was busy up to ${busy} %` : ''}.`;
  const what = `nsys recorded no kernel of the program, which used gpu${used.device}`;
  const torch = 'Or record inside each process: --evaluator torch';
  if (execution.engineProcesses.length > 0) {
    return new InferscopeError('E_NO_KERNELS', {
      what,
      why: `${rose} vLLM computes in a process of its own (${execution.engineProcesses.join(', ')}), which it forks unless told otherwise, and nsys sees no CUDA call of a forked process.`,
      fix: `${ownProcess}\n${torch}`,
    });
  }
  return new InferscopeError('E_NO_KERNELS', {
    what,
    why: `${rose} A process computed that nsys could not follow: one forked by a program that had CUDA or multiprocessing's fork in it, one of another container, or a server that was up before.`,
    fix: `Start what computes under run itself, and processes by spawn instead of fork (Python: multiprocessing.set_start_method("spawn")).
${torch}`,
  });
}

/** How kernels of vLLM's engine come where a profiler sees them. */
export const ownProcess = `Let vLLM spawn it, with the program below \`if __name__ == "__main__":\`: export VLLM_WORKER_MULTIPROC_METHOD=spawn
Or keep it in the program's own process: export VLLM_ENABLE_V1_MULTIPROCESSING=0`;

/** The GPU whose memory in use rose most since the program began; null where none rose by more than others take. */
function mostRisen(memory: RunExecution['memory']): { device: number; bytes: number } | null {
  const spans = new Map<number, { first: number; most: number }>();
  for (const { kind, device, bytes } of memory) {
    if (kind !== 'used' || typeof device !== 'number' || typeof bytes !== 'number') continue;
    const span = spans.get(device);
    if (span) span.most = Math.max(span.most, bytes);
    else spans.set(device, { first: bytes, most: bytes });
  }
  const risen = [...spans].map(([device, { first, most }]) => ({ device, bytes: most - first }));
  const [top] = risen.sort((a, b) => b.bytes - a.bytes);
  return top && top.bytes >= leastBytes ? top : null;
}

/** Processes that vLLM's log names, as it names them: "(EngineCore pid=2524) INFO …" -> "EngineCore pid=2524". */
export function engineProcesses(output: string): string[] {
  const named = output.matchAll(/^\(((?:EngineCore|Worker)\w* pid=\d+)\)/gm);
  return [...new Set([...named].map(([, name]) => name!))];
}
