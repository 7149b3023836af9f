import { type ErrorCode, InferscopeError } from '../../model/errors.js';

/**
 * Exceptions in vLLM's logs. The front end reports only "Engine core initialization failed. See root cause above.", and
 * the engine core "WorkerProc initialization failed due to an exception in a background process", so the cause is the
 * exception raised first.
 */
const exceptionLine =
  /^(?:\([^)]*\)\s*)?(?:ERROR \d\d-\d\d [\d:]+ \[[^\]]*\]\s*)?(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception))\b: (.+)$/;
const consequence =
  /Engine core initialization failed|WorkerProc initialization failed|Worker failed with error|EngineDeadError|EngineCore encountered|cancelled|Executor failed|died unexpectedly/;

/** C++ errors that end the process may follow other text on the line: "CUDA error (<file>:<line>): <words>". */
const errorAtEnd = /\b(CUDA error) \([^()]*:\d+\): (.+)$/;

/** The first exception in a vLLM log, in one line; null if it has none. */
export function rootCause(log: string): { name: string; text: string } | null {
  const lines = log.split(/\r\n|\n|\r/);
  for (const [index, line] of lines.entries()) {
    const match = exceptionLine.exec(line.trim()) ?? errorAtEnd.exec(line.trim());
    if (!match || consequence.test(line)) continue;
    const [, name, text] = match as unknown as [string, string, string];
    // pydantic prints a count first, and the error in the next lines.
    const detail = /^\d+ validation errors? for /.test(text)
      ? validationOf(lines.slice(index + 1, index + 6))
      : null;
    return { name, text: detail ?? text.trim() };
  }
  return null;
}

function validationOf(lines: readonly string[]): string | null {
  const messages = lines.map(
    (line) => /^\s*(?:\([^)]*\)\s*)?(?:Value error|Assertion failed), (.+?)(?: \[type=.*)?$/.exec(line)?.[1],
  );
  return messages.find((message) => message !== undefined) ?? null;
}

/** Whether an error message means that the engine ran out of memory. */
export const isOutOfMemory = (words: string): boolean =>
  remedies.some(({ pattern, code }) => code === 'E_OUT_OF_MEMORY' && pattern.test(words));

/** Adds to a failed launch the cause from its log, and what to type for known causes. */
export function withRootCause(failure: unknown, log: string | null): unknown {
  if (!(failure instanceof InferscopeError) || !unexplained.has(failure.code)) return failure;
  const { what, why: reported, fix } = failure.parts;
  const cause = log === null ? null : rootCause(log);
  // Errors raised in the front end are not in its log.
  const why =
    cause === null || !consequence.test(reported) ? reported : `${cause.name}: ${cause.text}`.slice(0, 500);
  const remedy = remedies.find(({ pattern }) => pattern.test(why));
  if (why === reported && !remedy) return failure;
  return new InferscopeError(
    remedy?.code ?? failure.code,
    { what, why, fix: remedy?.fix ?? fix },
    { cause: failure },
  );
}

const unexplained = new Set<ErrorCode>(['E_WORKLOAD_FAILED', 'E_OUT_OF_MEMORY']);

const remedies: { pattern: RegExp; code: ErrorCode; fix: string }[] = [
  {
    pattern: /max_model_len \(\d+\) is greater than the derived max_model_len/,
    code: 'E_LENGTHS',
    fix: 'Lower --max-model-len (or --engine-arg max_model_len) to the length that the model supports.',
  },
  {
    pattern: /max seq len \(\d+\)|larger than the maximum number of tokens that can be stored in KV cache/,
    code: 'E_OUT_OF_MEMORY',
    fix: 'Lower --engine-arg max_model_len, or give the KV cache more memory: a higher --engine-arg gpu_memory_utilization; on a CPU --engine-arg kv_cache_memory_bytes=… or VLLM_CPU_KVCACHE_SPACE=<GiB>.',
  },
  {
    pattern:
      /less than desired (?:GPU|CPU) memory utilization|allocation is less than requested memory for kv/,
    code: 'E_OUT_OF_MEMORY',
    fix: 'Lower --engine-arg gpu_memory_utilization (on a CPU it is a share of main memory; VLLM_CPU_KVCACHE_SPACE=<GiB> sets the cache instead), or end other programs that use this memory.',
  },
  {
    pattern: /No available memory for the cache blocks|out of memory/i,
    code: 'E_OUT_OF_MEMORY',
    fix: 'Raise --engine-arg gpu_memory_utilization, or choose a smaller model, --dtype or --max-model-len; inferscope estimate --fits shows which fit.',
  },
  {
    pattern: /device kernel image is invalid|no kernel image is available/,
    code: 'E_WORKLOAD_FAILED',
    fix: 'This build of vLLM has no kernel for this GPU with these dtypes: leave --quantization and --kv-cache-dtype out, or install a build for the GPU.',
  },
  {
    pattern: /Model architectures? .* (?:failed to be inspected|are not supported|is not supported)/,
    code: 'E_MODEL_ARCHITECTURE',
    fix: 'Use --engine transformers, or a version of vLLM that supports this architecture.',
  },
];
