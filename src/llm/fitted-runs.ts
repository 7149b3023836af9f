/**
 * Recorded runs that values of memory-constants.ts were fitted to, by session name in their profiles. Errors on these
 * runs show how good the fit is; only other runs show how good an estimate is.
 */
const fittedRuns: ReadonlySet<string> = new Set([
  // transformers on an H200: context, workspaces and the allocator's reserve.
  '20261121-114614-memory-qwen2.5-0.5b',
  '20261121-114637-memory-llama-2-7b',
  '20261121-114656-memory-llama-3.1-8b',
  '20261121-114714-memory-qwen2.5-14b',
  '20261121-114730-memory-qwen1.5-moe-a2.7b',
  '20261121-114748-memory-qwen2-1.5b',
  // Growth of the context with steps only.
  '20261121-125028-memory-llama-3.2-1b',
  // Two GPUs: buffers of NCCL.
  '20261121-123828-memory-llama-3.1-8b',
  '20261121-123855-memory-qwen2.5-14b',
  // vLLM 0.26: memory outside torch, graphs and captured collectives.
  '20261121-184839-memory-tinyllama-1.1b',
  '20261121-184930-memory-qwen2.5-7b',
  '20261121-185226-memory-qwen2.5-7b',
  '20261121-185303-memory-tinyllama-1.1b',
  '20261121-222253-memory-qwen2.5-7b',
]);

export const isFittedRun = (sessionId: string | null | undefined): boolean =>
  sessionId !== null && sessionId !== undefined && fittedRuns.has(sessionId);
