import type { Issue } from '../../model/document.js';
import { InferscopeError } from '../../model/errors.js';
import type { PlannedExecution } from './plan-executions.js';
import type { FileKind } from './run-options.js';

const captureRequirements: Record<string, { kinds: FileKind[]; why: string; fix: string }> = {
  nsys: {
    kinds: ['nsys-rep'],
    why: 'nsys exited without a report: its capture range never started, or the report could not be written.',
    fix: 'Leave out --capture-range, and check the nsys output in',
  },
  ncu: {
    kinds: ['ncu-rep'],
    why: 'ncu exited without a report: no kernel matched its filters, or the program launched none on a GPU.',
    fix: 'Leave out --ncu-kernel and --ncu-nvtx, and check the ncu output in',
  },
  torch: {
    kinds: ['kineto'],
    why: 'No Python process with torch in it wrote a trace: torch was not imported, Python ran with -I, -S or -E, or it was killed before it exited.',
    fix: 'A program without torch: --evaluator none. With torch: run it without those flags. The output of the program is in',
  },
  'gemm-log': {
    kinds: ['cublas-log', 'cublaslt-log'],
    why: 'No process called cuBLAS or cuBLASLt: the program ran on the CPU, or with its own kernels.',
    fix: 'Check with --evaluator nsys which kernels run; the output of the program is in',
  },
};

/** The failure of a profiler that exits normally without output. */
export function emptyCaptureError(
  plan: Pick<PlannedExecution, 'execution_id'>,
  files: readonly { kind: FileKind }[],
  log: string,
): InferscopeError | null {
  const expected = captureRequirements[plan.execution_id];
  if (!expected || files.some(({ kind }) => expected.kinds.includes(kind))) return null;
  return new InferscopeError('E_NO_KERNELS', {
    what: `the ${plan.execution_id} execution produced no capture`,
    why: expected.why,
    fix: `${expected.fix} ${log}`,
  });
}

/** Messages of frameworks that fall back to the CPU without failing. */
const cpuFallback =
  /CUDA is not available[^\n]*|CUDA initialization: [^\n]*|User provided device_type of 'cuda', but CUDA is not available[^\n]*|Failed to create CUDAExecutionProvider[^\n]*|no usable GPU found[^\n]*/i;

export function cpuFallbackIssue(output: string): Issue | null {
  const message = cpuFallback.exec(output)?.[0];
  if (message === undefined) return null;
  const text = `The program may have run on the CPU by accident. Its output: "${message.trim().slice(0, 200)}". inferscope doctor shows why the GPU is not used.`;
  return { code: 'cpu_by_accident', severity: 'warning', text };
}
