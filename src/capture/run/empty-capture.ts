import type { Issue } from '../../model/document.js';
import { InferscopeError } from '../../model/errors.js';
import type { PlannedExecution } from './plan-executions.js';
import type { FileKind } from './run-options.js';

const wanted: Record<string, { kinds: FileKind[]; why: string; fix: string }> = {
  nsys: {
    kinds: ['nsys-rep'],
    why: 'nsys ended without a report: its capture range never began, or the report could not be written.',
    fix: 'Leave --capture-range out, and see what nsys said in',
  },
  ncu: {
    kinds: ['ncu-rep'],
    why: 'ncu ended without a report: no kernel matched its filters, or the program launched none on a GPU.',
    fix: 'Leave --ncu-kernel and --ncu-nvtx out, and see what ncu said in',
  },
  torch: {
    kinds: ['kineto'],
    why: 'No Python process with torch in it wrote a trace: torch was not imported, Python ran with -I, -S or -E, or it was killed before its end.',
    fix: 'Run it without those flags; what the program said is in',
  },
  'gemm-log': {
    kinds: ['cublas-log', 'cublaslt-log'],
    why: 'No process called cuBLAS or cuBLASLt: the program ran on the CPU, or with kernels of its own.',
    fix: 'Check with --evaluator nsys which kernels run; what the program said is in',
  },
};

/** A profiler that ended well and left nothing is a failure too. */
export function emptyCapture(
  plan: Pick<PlannedExecution, 'execution_id'>,
  files: readonly { kind: FileKind }[],
  log: string,
): InferscopeError | null {
  const expected = wanted[plan.execution_id];
  if (!expected || files.some(({ kind }) => expected.kinds.includes(kind))) return null;
  return new InferscopeError('E_NO_KERNELS', {
    what: `the ${plan.execution_id} execution left nothing to read`,
    why: expected.why,
    fix: `${expected.fix} ${log}`,
  });
}

/** Words of frameworks that fall back to the CPU without failing. */
const cpuFallback =
  /CUDA is not available[^\n]*|CUDA initialization: [^\n]*|User provided device_type of 'cuda', but CUDA is not available[^\n]*|Failed to create CUDAExecutionProvider[^\n]*|no usable GPU found[^\n]*/i;

export function usesCpuByAccident(output: string): Issue | null {
  const said = cpuFallback.exec(output)?.[0];
  if (said === undefined) return null;
  const text = `The program may have run on the CPU by accident: it said "${said.trim().slice(0, 200)}". inferscope doctor tells why the GPU is not used.`;
  return { code: 'cpu_by_accident', severity: 'warning', text };
}
