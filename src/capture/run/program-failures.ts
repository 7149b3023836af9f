import { failure, lineAround, outputMatches, type FailurePattern } from './failure-pattern.js';
import { formatSetting } from '../../vocabulary/format.js';

/** A path is used as it is, a plain name is searched on PATH. A missing interpreter (#!) is reported like a missing file. */
const adviceForMissing = (program: string): [why: string, fix: string] =>
  program.includes('/')
    ? [
        'The file, or the interpreter in its first line, does not exist.',
        'Check the path, relative to the current folder.',
      ]
    : ['It is not on PATH.', `Check the spelling, or give its path: ./${program}`];

/** General failures of the program. */
export const programFailures: FailurePattern[] = [
  {
    id: 'command_missing',
    matches: ({ startError }) => startError === 'ENOENT',
    explain: ({ command }) =>
      failure(
        'E_WORKLOAD_FAILED',
        `the program ${command[0]} was not found`,
        ...adviceForMissing(command[0] ?? ''),
      ),
  },
  {
    id: 'command_forbidden',
    matches: ({ startError }) => startError === 'EACCES',
    explain: ({ command }) =>
      failure(
        'E_PERMISSION',
        `the program ${command[0]} cannot be executed`,
        'The file is not executable for this user, or is on a file system mounted noexec.',
        `Type: chmod +x ${command[0]} – or run it with its interpreter, e.g. python ${command[0]}`,
      ),
  },
  {
    id: 'disk_full',
    anyExit: true,
    matches: outputMatches(/No space left on device|Errno 28|Disk quota exceeded/),
    explain: (ended, match) =>
      failure(
        'E_DISK_FULL',
        'the disk is full',
        `While the program ran: ${lineAround(ended, match)}`,
        'Free some space (df -h shows where; nsys and torch write to TMPDIR), then run it again.',
      ),
  },
  {
    id: 'timeout',
    matches: ({ timedOut }) => timedOut,
    explain: ({ timeoutMs, tool, execution_id }) =>
      tool?.name === 'ncu'
        ? failure(
            'E_TIMEOUT',
            `ncu did not finish within ${formatSetting((timeoutMs ?? 0) / 1000, 's')}`,
            'It replays every kernel up to 40 times; kernels profiled until then are saved if ncu could write them.',
            'Limit it further: --ncu-nvtx "regex:decode/", --ncu-kernel NAME, or --ncu-set basic; or raise --timeout.',
          )
        : failure(
            'E_TIMEOUT',
            `the ${execution_id} execution did not finish within ${formatSetting((timeoutMs ?? 0) / 1000, 's')}`,
            'It was stopped; its output until then was saved. A first run may be downloading its model.',
            'Raise --timeout (e.g. --timeout 30m), or run the program once by itself to download its model.',
          ),
  },
  {
    id: 'host_out_of_memory',
    matches: outputMatches(
      /^MemoryError\b|std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)|Cannot allocate memory|JavaScript heap out of memory/m,
    ),
    explain: (ended, match) =>
      failure(
        'E_OUT_OF_MEMORY',
        'the program ran out of main memory',
        lineAround(ended, match),
        'Lower the batch size, load the weights with less host memory, or raise the memory limit of the job or container.',
      ),
  },
  {
    id: 'module_missing',
    matches: outputMatches(/ModuleNotFoundError: No module named '([\w.]+)'/),
    explain: (ended, match) =>
      failure(
        'E_ENGINE_MISSING',
        `Python has no module ${match?.[1]}`,
        `${ended.command[0]} is another Python than the one it is installed in, or it is not installed.`,
        `Type: ${/python/.test(ended.command[0] ?? '') ? ended.command[0] : 'python3'} -m pip install ${match?.[1]?.split('.')[0]} – or activate its virtual environment first.`,
      ),
  },
  {
    id: 'script_missing',
    matches: outputMatches(/can't open file '([^']+)': \[Errno 2\]/),
    explain: (_, match) =>
      failure(
        'E_WORKLOAD_FAILED',
        `Python did not find the script ${match?.[1]}`,
        'The path is relative to the folder you are in.',
        'Check the path of the script after --.',
      ),
  },
  {
    id: 'invalid_json',
    matches: outputMatches(
      /(?:json\.decoder\.)?JSONDecodeError|SyntaxError: Unexpected .* in JSON|is not valid JSON/,
    ),
    explain: (ended, match) =>
      failure(
        'E_WORKLOAD_FAILED',
        'the program read invalid JSON',
        lineAround(ended, match),
        `Check the full output for an earlier error: ${ended.log}`,
      ),
  },
  {
    id: 'permission_denied',
    matches: outputMatches(/PermissionError: \[Errno 13\][^\n]*|: Permission denied$/m),
    explain: (ended, match) =>
      failure(
        'E_PERMISSION',
        'the program was denied access to a file or device',
        lineAround(ended, match),
        'Check who owns it (ls -l); GPUs are /dev/nvidia* and /dev/kfd.',
      ),
  },
  {
    id: 'killed_for_memory',
    matches: ({ signal, exit_code, timedOut }) => !timedOut && (signal === 'SIGKILL' || exit_code === 137),
    explain: () =>
      failure(
        'E_WORKLOAD_FAILED',
        'the program was killed (SIGKILL)',
        'Usually by the kernel when main memory runs out (dmesg shows "Out of memory"), or by a job scheduler.',
        'Lower the batch size, load the weights with less host memory, or raise the memory limit of the job or container.',
      ),
  },
];
