/** Codes of failures that lie in the machine at that moment: the same command may work a minute later. */
const codes = new Set(['E_TOOL_FAILED', 'E_SERVER_UNREACHABLE', 'E_DISK_FULL']);

/** What drivers, Docker and networks say when they, and not the workload, failed. */
const words: readonly RegExp[] = [
  /Cannot connect to the Docker daemon|error during connect: /,
  /Connection (?:reset by peer|aborted|timed out)|Temporary failure in name resolution|EAI_AGAIN|ECONNRESET/,
  /(?:HTTP|status)(?: code)?:? ?(?:429|50[0234])|(?:429|50[0234]) (?:Client|Server) Error/,
  /CUDA driver initialization failed|CUDA-capable device\(s\) is\/are busy|all CUDA-capable devices are busy or unavailable/,
  /NCCL (?:error|WARN).*(?:unhandled system error|remote process exited)/i,
  /GPU is lost|GPU has fallen off the bus|Xid \(/,
];

/**
 * Whether a failure is worth another try. Running out of memory, a wrong flag or a model that is missing is not: it
 * would fail again.
 */
export function isInfrastructureFault(code: string | null, output: string): boolean {
  if (code === 'E_OUT_OF_MEMORY' || code === 'E_USAGE' || code === 'E_MODEL_ACCESS') return false;
  return (code !== null && codes.has(code)) || words.some((pattern) => pattern.test(output));
}
