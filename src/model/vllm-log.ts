/** Memory facts in a vLLM log, each with its line. Read by `src/import/vllm-log/`. */

/** A value and the line it was read from. */
export interface VllmLogFact<Value> {
  value: Value;
  /** The line without colors; a long line is shortened around the value. */
  line: string;
  /** From 1; a carriage return also ends a line. */
  line_number: number;
}

/** A size. vLLM prints rounded GiB (as "GB" up to 0.6): `value` is the printed value in bytes. */
export interface VllmLogBytes extends VllmLogFact<number> {
  /** Half of the last printed digit in bytes: the true value is within. 0 if bytes were printed. */
  rounding_bytes: number;
}

/** Facts printed by one worker process about its own GPU. Negative values are kept. */
export interface VllmRankFacts {
  /** Position in the tensor/pipeline group of its engine, from 0. */
  rank: number;
  /** log: named in the prefix. order: by process id, the order in which vLLM spawns them. single: only one process. */
  rank_source: 'log' | 'order' | 'single';
  /** As printed, without the process id: Worker_TP0_EP0, VllmWorkerProcess, EngineCore_DP0, or '' for the main process. */
  process: string;
  pid: number | null;
  /** Data-parallel engine it belongs to. */
  data_parallel_rank: number;
  weights: VllmLogBytes | null;
  /** Allocated outside PyTorch: NCCL, attention workspaces, CUDA context above the first measurement. */
  non_torch: VllmLogBytes | null;
  activation_peak: VllmLogBytes | null;
  /**
   * Whether `activation_peak` includes the estimate for CUDA graphs. It does if `consumed` is printed: then budget − consumed −
   * activation_peak = kv_cache, with the estimate subtracted too.
   */
  activation_includes_graphs: boolean;
  /** 0.6.4 only: weights and activations together. */
  torch_peak: VllmLogBytes | null;
  /** 2026: weights and non-torch together. */
  consumed: VllmLogBytes | null;
  kv_cache: VllmLogBytes | null;
  /** Measured after capture. */
  cuda_graphs: VllmLogBytes | null;
  /** Reserved for CUDA graphs before capture. */
  cuda_graphs_estimate: VllmLogBytes | null;
  device_total: VllmLogBytes | null;
  device_free_at_start: VllmLogBytes | null;
  /** 0.6.4 only: in use on the device before vLLM loaded anything. */
  device_used_at_start: VllmLogBytes | null;
  /** total × utilization, as vLLM computed it. */
  budget: VllmLogBytes | null;
  load_seconds: VllmLogFact<number> | null;
  graph_capture_seconds: VllmLogFact<number> | null;
}

export interface VllmLogFacts {
  version: VllmLogFact<string> | null;
  engine: VllmLogFact<'V0' | 'V1'> | null;
  model: VllmLogFact<string> | null;
  /** bfloat16, float16, … */
  dtype: VllmLogFact<string> | null;
  /** awq, gptq_marlin, fp8 …; value null if vLLM prints None. */
  quantization: VllmLogFact<string | null> | null;
  /** auto means dtype. */
  kv_cache_dtype: VllmLogFact<string> | null;
  tensor_parallel_size: VllmLogFact<number> | null;
  pipeline_parallel_size: VllmLogFact<number> | null;
  data_parallel_size: VllmLogFact<number> | null;
  max_model_len: VllmLogFact<number> | null;
  gpu_memory_utilization: VllmLogFact<number> | null;
  max_num_batched_tokens: VllmLogFact<number> | null;
  max_num_seqs: VllmLogFact<number> | null;
  enforce_eager: VllmLogFact<boolean> | null;
  enable_prefix_caching: VllmLogFact<boolean> | null;
  /** Tokens per block; 16 in most versions, which do not print it. */
  block_size: VllmLogFact<number> | null;
  /** Blocks of the GPU's KV cache. */
  kv_cache_blocks: VllmLogFact<number> | null;
  cpu_blocks: VllmLogFact<number> | null;
  /** As printed; the minimum of several, which the engine uses. V0 prints only blocks: null. */
  kv_cache_tokens: VllmLogFact<number> | null;
  /** Requests of `tokens` tokens that fit at the same time. */
  max_concurrency: VllmLogFact<{ tokens: number; requests: number }> | null;
  /** Files on disk, if printed. */
  checkpoint: VllmLogBytes | null;
  init_seconds: VllmLogFact<number> | null;
  /** The first line that reports running out of memory. */
  failure: VllmLogFact<string> | null;
  ranks: VllmRankFacts[];
  /** Engine starts in the log; these facts are those of the last start with memory figures. */
  starts: number;
  /** Why the log has no memory figures; null if it has. */
  reason: string | null;
}
