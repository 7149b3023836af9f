/** What a log of vLLM says about memory, with the line each figure rests on. Read by `src/import/vllm-log/`. */

/** A value and the line it was read from. */
export interface VllmLogFact<Value> {
  value: Value;
  /** The line without colors, shortened around the value when it is long. */
  line: string;
  /** From 1; a carriage return ends a line too. */
  line_number: number;
}

/** A size. vLLM prints GiB (as "GB" up to 0.6), rounded: `value` is what it printed, in bytes. */
export interface VllmLogBytes extends VllmLogFact<number> {
  /** Half of the last digit printed, in bytes: the true value is within. 0 where bytes were printed. */
  rounding_bytes: number;
}

/** What one worker process printed. Everything is for its own GPU. Negative values are kept. */
export interface VllmRankFacts {
  /** Position in the tensor/pipeline group of its engine, from 0. */
  rank: number;
  /** log: named in the prefix. order: the order of process ids, as vLLM spawns them. single: there is one process. */
  rank_source: 'log' | 'order' | 'single';
  /** As printed, without the process id: Worker_TP0_EP0, VllmWorkerProcess, EngineCore_DP0, or '' for the main process. */
  process: string;
  pid: number | null;
  /** Data-parallel engine it belongs to. */
  data_parallel_rank: number;
  weights: VllmLogBytes | null;
  /** Allocated outside PyTorch: NCCL, attention workspaces, CUDA context beyond the first measurement. */
  non_torch: VllmLogBytes | null;
  activation_peak: VllmLogBytes | null;
  /**
   * Whether `activation_peak` has the estimate for CUDA graphs in it. So it is wherever `consumed` is printed: there
   * budget − consumed − activation_peak = kv_cache, with the estimate set aside too.
   */
  activation_includes_graphs: boolean;
  /** 0.6.4 only: weights and activations together. */
  torch_peak: VllmLogBytes | null;
  /** 2026: weights and non-torch together. */
  consumed: VllmLogBytes | null;
  kv_cache: VllmLogBytes | null;
  /** Measured after capture. */
  cuda_graphs: VllmLogBytes | null;
  /** Set aside for them before. */
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
  /** awq, gptq_marlin, fp8 …; value null where vLLM says None. */
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
  /** Tokens a block; 16 in most versions, and then not printed. */
  block_size: VllmLogFact<number> | null;
  /** Blocks of the GPU's KV cache. */
  kv_cache_blocks: VllmLogFact<number> | null;
  cpu_blocks: VllmLogFact<number> | null;
  /** As printed; the least of several, as the engine takes it. V0 prints blocks only: null. */
  kv_cache_tokens: VllmLogFact<number> | null;
  /** Requests of `tokens` tokens that fit at once. */
  max_concurrency: VllmLogFact<{ tokens: number; requests: number }> | null;
  /** Files on disk, where it says so. */
  checkpoint: VllmLogBytes | null;
  init_seconds: VllmLogFact<number> | null;
  /** The first line in which it gives up for lack of memory. */
  failure: VllmLogFact<string> | null;
  ranks: VllmRankFacts[];
  /** Engine starts in the log; these facts are those of the last one that says anything of memory. */
  starts: number;
  /** Why there is nothing about memory in it; null where there is. */
  reason: string | null;
}
