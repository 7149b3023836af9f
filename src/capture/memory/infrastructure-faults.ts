import type { ErrorCode } from '../../model/errors.js';

/** A transient failure of the machine, not of the configuration: the same command may work a minute later. */
interface InfrastructureFault {
  id: string;
  /** What failed, for the journal of a sweep. */
  text: string;
}

/** Codes caused by the configuration or the user: a retry would fail again. */
const ownCodes: ReadonlySet<ErrorCode> = new Set([
  'E_OUT_OF_MEMORY',
  'E_USAGE',
  'E_LENGTHS',
  'E_DTYPE',
  'E_ENGINE_MISSING',
  'E_TOOL_MISSING',
  'E_TOOL_VERSION',
  'E_PERMISSION',
  'E_MODEL_ACCESS',
  'E_MODEL_NOT_FOUND',
  'E_MODEL_FILE',
  'E_MODEL_CONFIG',
  'E_MODEL_ARCHITECTURE',
  'E_CONFIG_FILE',
  'E_INTERRUPTED',
]);

/**
 * Messages of configurations that fail on their own. They come before the faults: a failed allocation in the middle of a
 * collective makes NCCL report errors on every other rank.
 */
const ownWords: readonly RegExp[] = [
  /(?:CUDA|HIP) out of memory|OutOfMemoryError|cudaErrorMemoryAllocation|hipErrorOutOfMemory/i,
  /No available memory for the cache blocks|larger than the maximum number of tokens that can be stored in KV cache/,
  /max seq len \(\d+\)[^\n]*KV cache is needed/,
  // The driver was updated while its kernel module was loaded: only a reboot helps.
  /Driver\/library version mismatch/i,
  /ncclInvalid(?:Usage|Argument)/,
];

const faults: readonly (InfrastructureFault & { words: RegExp })[] = [
  {
    id: 'docker_gone',
    text: 'Docker did not respond',
    words: /Cannot connect to the Docker daemon|error during connect|Docker does not respond/,
  },
  {
    id: 'gpu_initialization',
    text: 'the driver could not be initialized',
    words:
      /CUDA driver initialization failed|CUDA error: initialization error|CUDA-capable device(?:s|\(s\))? (?:is|are|is\/are) busy|busy or unavailable|CUDA unknown error/,
  },
  {
    id: 'gpu_lost',
    text: 'a GPU failed',
    words:
      /GPU is lost|fallen off the bus|uncorrectable ECC error|cudaErrorECCUncorrectable|NVRM: Xid|hipErrorLaunchFailure/,
  },
  {
    id: 'gpu_memory_held',
    text: 'GPU memory was held by another process, or not yet freed by the last run',
    words:
      /Free memory on device[^\n]*is less than desired GPU memory utilization|Error in memory profiling\.[^\n]*Initial (?:used|free) memory|GPU memory did not clear/,
  },
  {
    id: 'port_taken',
    text: 'a port was taken',
    words: /Address already in use|EADDRINUSE|\[Errno 98\]|The server socket has failed to listen/,
  },
  {
    id: 'collective_timeout',
    text: 'ranks lost their connection',
    words:
      /nccl(?:System|Remote|Internal|UnhandledCuda)Error|NCCL (?:error|WARN)[^\n]*(?:unhandled system error|remote process exited|Connection (?:closed|refused|reset))|Watchdog caught collective operation timeout|Timed out (?:after|waiting)[^\n]*(?:rendezvous|clients|TCPStore|ranks)|gloo[^\n]*Connection (?:closed|reset)/i,
  },
  {
    id: 'network',
    text: 'the network or the hub failed',
    words:
      /Connection (?:reset by peer|aborted|timed out)|Temporary failure in name resolution|EAI_AGAIN|ECONNRESET|ETIMEDOUT|Read timed out|IncompleteRead|(?:HTTP|status)(?: code)?:? ?(?:429|50[0234])|(?:429|50[0234]) (?:Client|Server) Error/,
  },
];

/** Codes that are sufficient alone. */
const faultCodes: Partial<Record<ErrorCode, string>> = {
  E_SERVER_UNREACHABLE: 'the server did not respond',
  E_DISK_FULL: 'the disk was full',
  E_DOCKER: 'Docker could not be used',
};

/**
 * Whether a failure is worth a retry, and its kind. Null for failures of the configuration itself: out of memory, a missing model, an
 * invalid flag.
 * @param code of the error document; null if the process died without one
 * @param text of the error and the end of the engine's log
 */
export function infrastructureFault(code: string | null, text: string): InfrastructureFault | null {
  if (code !== null && ownCodes.has(code as ErrorCode)) return null;
  if (ownWords.some((words) => words.test(text))) return null;
  const fault = faults.find(({ words }) => words.test(text));
  if (fault) return { id: fault.id, text: fault.text };
  const codeText = code === null ? undefined : faultCodes[code as ErrorCode];
  return codeText === undefined ? null : { id: code!.slice(2).toLowerCase(), text: codeText };
}
