import { importerFailure, importerMissing } from '../tools/nsys.js';
import { engineProcesses, spawnAdvice } from './unseen-kernels.js';
import { failure, outputMatches, type Failure, type FailurePattern } from './failure-pattern.js';

/** Comes before all others: the program usually continues without its profiler. */
export const countersForbidden: FailurePattern = {
  id: 'counters_forbidden',
  anyExit: true,
  matches: outputMatches(/ERR_NVGPUCTRPERM/),
  explain: () =>
    failure(
      'E_NCU_PERMISSION',
      'ncu has no permission to read the counters of this GPU (ERR_NVGPUCTRPERM)',
      'The driver restricts performance counters to administrators (NVreg_RestrictProfilingToAdminUsers=1).',
      'Run with sudo (in a container: --cap-add=SYS_ADMIN), or ask an administrator for the line ' +
        '"options nvidia NVreg_RestrictProfilingToAdminUsers=0" in /etc/modprobe.d and a reload of the driver.\n' +
        'nsys and the torch profiler work without it: --evaluator nsys',
    ),
};

/** The hooks' message about vLLM. */
const spawned = /vLLM's processes are spawned, not forked/;

/** Messages of nsys and ncu when they could not record; the program itself may have succeeded. */
export const profilerFailures: FailurePattern[] = [
  {
    id: 'importer_missing',
    anyExit: true,
    matches: ({ tool, output }) => tool?.name === 'nsys' && importerMissing(output),
    explain: ({ tool }) => {
      const { code, parts } = importerFailure({ version: tool!.version, path: tool!.path });
      return { code, parts };
    },
  },
  {
    id: 'no_kernels_ncu',
    anyExit: true,
    matches: ({ tool, output }) => tool?.name === 'ncu' && /No kernels were profiled/.exec(output),
    explain: ({ output }) => {
      if (/NVTX include expressions/.test(output))
        return noKernels(
          'ncu profiled no kernel',
          'No kernel ran inside a range that matches --ncu-nvtx (and --ncu-kernel, if given).',
          'NAME/ matches whole names of ranges, "regex:decode/" also parts; vLLM names its steps execute_…: "regex:execute_/".',
        );
      const engines = spawned.test(output) ? [] : engineProcesses(output);
      if (engines.length > 0) {
        const why = `No kernel matched its filters, or ncu did not see the kernels of vLLM's engine process (${engines.join(', ')}), which is forked by default.`;
        return noKernels('ncu profiled no kernel', why, spawnAdvice);
      }
      return noKernels(
        'ncu profiled no kernel',
        'No kernel matched its filters, or the program launched none.',
        'Leave out --ncu-kernel and --ncu-nvtx to profile all kernels. Names: inferscope sql "select short_name from kernels"',
      );
    },
  },
  {
    id: 'no_kernels_nsys',
    anyExit: true,
    matches: ({ tool, output }) => tool?.name === 'nsys' && /does not contain CUDA kernel data/.exec(output),
    explain: () =>
      noKernels(
        'nsys recorded no CUDA kernel',
        'The program launched none, launched them in a process that nsys could not trace (another container, a running server), or in CUDA graphs traced as a whole.',
        'Profile the process that uses the GPU (start the server under run), and check that it uses the GPU: inferscope doctor',
      ),
  },
  {
    id: 'capture_range_never',
    anyExit: true,
    matches: ({ tool, output }) =>
      tool?.name === 'nsys' &&
      /No reports were generated|Capture range was not (?:triggered|started)/i.exec(output),
    explain: () =>
      noKernels(
        'nsys wrote no report',
        'Its capture range never started: the program did not call cudaProfilerStart or push that NVTX range.',
        'Leave out --capture-range to record the whole run.',
      ),
  },
];

function noKernels(what: string, why: string, fix: string): Failure {
  return failure('E_NO_KERNELS', what, why, fix);
}
