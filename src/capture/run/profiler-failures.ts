import { importerFailure, importerMissing } from '../tools/nsys.js';
import { engineProcesses, ownProcess } from './unseen-kernels.js';
import { known, said, type Recognised, type Recogniser } from './recogniser.js';

/** Stands before all others: the program mostly goes on without its profiler. */
export const countersForbidden: Recogniser = {
  id: 'counters_forbidden',
  anyExit: true,
  matches: said(/ERR_NVGPUCTRPERM/),
  explain: () =>
    known(
      'E_NCU_PERMISSION',
      "ncu may not read this GPU's counters (ERR_NVGPUCTRPERM)",
      'The driver restricts performance counters to administrators (NVreg_RestrictProfilingToAdminUsers=1).',
      'Run with sudo (in a container: --cap-add=SYS_ADMIN), or ask an administrator for the line ' +
        '"options nvidia NVreg_RestrictProfilingToAdminUsers=0" in /etc/modprobe.d and a reload of the driver.\n' +
        'nsys and the torch profiler work without it: --evaluator nsys',
    ),
};

/** What nsys and ncu say when they could not record; the program itself may have ended well. */
export const profilerFailures: Recogniser[] = [
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
      const own = engineProcesses(output);
      if (own.length > 0) {
        const why = `No kernel matched its filters, or ncu did not see those of vLLM's own process (${own.join(', ')}), which is forked unless told otherwise.`;
        return noKernels('ncu profiled no kernel', why, ownProcess);
      }
      return noKernels(
        'ncu profiled no kernel',
        'No kernel matched its filters, or the program launched none.',
        '--ncu-kernel and --ncu-nvtx narrow it; leave them out to see all. Names: inferscope sql "select short_name from kernels"',
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
        'The program launched none, did so in a process nsys could not follow (another container, a server already up), or in CUDA graphs traced as a whole.',
        'Profile the process that computes (start the server under run), and check that it uses the GPU: inferscope doctor',
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
        'nsys made no report',
        'Its capture range never began: the program did not call cudaProfilerStart or push that NVTX range.',
        'Leave --capture-range out to record the whole run.',
      ),
  },
];

function noKernels(what: string, why: string, fix: string): Recognised {
  return known('E_NO_KERNELS', what, why, fix);
}
