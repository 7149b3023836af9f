import type { TraceResult } from '../../model/documents/trace.js';
import { formatPercent } from '../../vocabulary/format.js';

type Parts = Pick<
  TraceResult,
  'session' | 'phases' | 'classes' | 'operators' | 'launches' | 'source' | 'kernels'
>;

/** Kernels of vLLM's own, which every model of it runs: vllm::reshape_and_cache_flash_kernel, vllm::act_and_mul_kernel. */
const ofVllm = /\bvllm::/;

/** What to type next, from what this capture shows and lacks. */
export function nextSteps({
  session,
  phases,
  classes,
  operators,
  source,
  kernels,
}: Parts): TraceResult['next_steps'] {
  const steps: TraceResult['next_steps'] = [];
  if (!source.gpu_used) {
    return [
      {
        command: 'inferscope doctor',
        why: 'tells whether this machine has a GPU and a torch that sees it; the program must also put its model there',
      },
    ];
  }
  const decode = phases.find(({ kind }) => kind === 'decode') ?? phases.find(({ kind }) => kind === 'mixed');
  const opaque = classes[0]?.rows.some((row) => row.class === 'graph') ?? false;
  const name = session.name ?? session.id;
  if (opaque) {
    steps.push({
      command: 'inferscope run --evaluator nsys -- <command>',
      why: 'records the nodes of CUDA graphs, which this capture lacks',
    });
  }
  if (decode && decode.idle_share > 0.3 && decode.launches > 50) {
    steps.push({
      command: 'inferscope run --evaluator nsys -- <command with CUDA graphs or torch.compile>',
      why: `a decode step makes ${Math.round(decode.launches)} launches and waits ${formatPercent(decode.idle_share)} of the time; then: inferscope session compare ${name} @last`,
    });
  }
  if (!operators) {
    steps.push({
      command: 'inferscope run --evaluator torch -- <command>',
      why: 'tells which operators and shapes launched these kernels',
    });
  }
  if (decode && decode.idle_share < 0.5) {
    steps.push({
      command: 'inferscope run --evaluator ncu -- <command>',
      why: 'tells why the hottest kernels take as long as they do',
    });
  }
  if (!source.timing && kernels.some(({ name }) => ofVllm.test(name))) {
    // Its stages are ranges that only a profiler records: a clean run of the program has none.
    steps.push({
      command:
        'inferscope bench latency --engine vllm --model <model> --batch-size <n> --input-len <n> --output-len <n>',
      why: 'times the steps of vLLM without a profiler, which a clean run of this program does not tell: what the profiler added',
    });
  } else if (!source.timing) {
    steps.push({
      command: 'inferscope run --evaluator none,nsys -- <command>',
      why: 'a run without a profiler beside it tells what the profiler added',
    });
  }
  return steps;
}
