import type { ErrorCode } from './errors.js';

interface Meaning {
  means: string;
  /** What to do about it; missing if the issue only explains a number. */
  fix?: string;
}

/** Why a number is doubtful, lost or left out: an issue has one of these codes and a text with numbers and names. */
export const issueCodes = {
  // Host and machine during a recording.
  machine_not_idle: {
    means: 'other processes used the CPU during the measurement',
    fix: 'stop them and measure again',
  },
  cpu_steal: {
    means: 'the hypervisor gave CPU time of this virtual machine to others',
    fix: 'measure on a dedicated machine',
  },
  interrupted_steps: { means: 'something interrupted a few steps, and means leave these out' },
  late_samples: {
    means: 'host samples were missed: the sampling process was busy',
    fix: 'leave it a free core',
  },
  sampling_cost: { means: 'sampling the host took more than 5 % of a core' },
  process_unreadable: { means: 'CPU time and memory of the measured process could not be read' },
  children_unreadable: { means: 'CPU time and memory of its child processes could not be read' },
  clock_unreadable: { means: 'core clocks could not be read' },
  clock_nominal: { means: 'clock_mhz is the nominal clock: the hypervisor hides the real one' },
  virtual_machine: { means: 'the hypervisor reports cache sizes and may hide clocks' },
  under_evaluator: {
    means: 'the command itself ran under a profiler: its times include the cost of that profiler',
    fix: 'measure without it',
  },
  hardware_unknown: { means: 'a property of the machine could not be read' },
  first_download: { means: 'the program downloaded its model while it was measured', fix: 'run it again' },

  // GPUs and their telemetry.
  no_gpu: { means: 'no GPU was sampled' },
  gpu_shared: {
    means: 'another process used the GPU during the measurement',
    fix: 'free the GPU and measure again',
  },
  gpu_processes_foreign: { means: 'processes on a GPU belong to another user or container' },
  gpu_memory_not_cleared: {
    means: 'GPU memory was still in use before the next execution',
    fix: 'find the process with nvidia-smi and stop it',
  },
  cpu_by_accident: {
    means: 'the engine computed on the CPU, and --device cpu was not given',
    fix: 'install a GPU build of the framework, or state --device cpu',
  },
  telemetry_missing: { means: 'the GPU or tool does not report a metric' },
  telemetry_sparse: { means: 'GPUs were sampled at less than half of the requested rate' },
  telemetry_impossible: { means: 'samples outside any possible range were dropped' },
  telemetry_unreadable: { means: 'samples that are not numbers were dropped' },
  telemetry_cut_off: { means: 'lines of a log with too few columns were skipped' },
  telemetry_out_of_order: { means: 'lines of a log are older than lines before them' },
  telemetry_undated: {
    means: 'a log without dates was placed at the start of the session',
    fix: 'record it with a timestamp',
  },
  telemetry_local_time: { means: 'a log has local times: the zone of this machine was used' },

  // Executions of a recording.
  execution_failed: { means: 'the program failed in this execution', fix: 'read its log in the session' },
  ended_early: { means: 'the run stopped before its last point', fix: 'see the reason in the text' },
  interrupted: { means: 'the run was stopped by Ctrl-C or a signal: what was measured so far is saved' },
  workload_error: { means: 'the program reported an error' },
  nested_session: { means: 'the program recorded a session of its own' },
  profiling_bounded: { means: 'a profiler recorded only part of the run' },
  torch_trace: { means: 'the PyTorch profiler reported a problem' },
  name_taken: {
    means: 'the session was saved without its name, since another one has it',
    fix: 'inferscope session rename',
  },
  user_file_damaged: { means: 'name, notes and tags of a session could not be read' },
  raw_reports_left_out: {
    means: 'the archive was made without raw reports',
    fix: 'export it again with --raw to have them',
  },

  // Captures in general.
  capture_unreadable: { means: 'a capture could not be read', fix: 'see the reason in the text' },
  rank_unreadable: {
    means: 'the file of a rank could not be imported, or its recording has not ended',
    fix: 'see the reason in the text; repeat import --ranks with --resume once it is fixed',
  },
  rank_missing: { means: 'a rank of the job has no file or recording', fix: 'look for its trace' },
  rank_file_skipped: { means: 'import --ranks: files that are not timelines were left out' },
  rank_windows_apart: {
    means: 'the captures of the ranks cover different times',
    fix: 'start and stop all captures at the same step: cudaProfilerStart and a torch schedule by the number of the step',
  },
  rank_clock_unaligned: {
    means: 'the clock of a rank could not be aligned on the ends of collectives',
    fix: 'capture the same steps on all ranks',
  },
  capture_unread: {
    means: 'a capture was not read because of Ctrl-C or a signal',
    fix: 'import it into the session',
  },
  files_left_out: { means: 'files of a folder were not read' },
  files_ignored: { means: 'files of a folder are not of the expected kind' },
  trailing_bytes: { means: 'a file continues after the end of its capture: the rest was not read' },
  clock_impossible: { means: 'the wall clock of a capture is not a valid date and was ignored' },
  names_missing: { means: 'events have no name in the file' },
  copy_bytes_impossible: { means: 'sizes of copies that are negative or above 2^48 bytes were dropped' },
  times_negative: { means: 'events start before the zero of their clock' },

  // Attribution of a timeline.
  no_kernels: {
    means: 'the capture has no kernels',
    fix: 'check that the profiled process launches them, and that nothing else uses CUPTI',
  },
  no_device_activity: { means: 'the trace has host events only', fix: 'profile with ProfilerActivity.CUDA' },
  stages_missing: {
    means: 'the capture has no NVTX or record_function ranges: nothing has a stage',
    fix: 'mark stages, or run under inferscope run',
  },
  stages_from_hooks: { means: 'stages were seen by hooks in transformers, not marked by the program' },
  steps_inferred: { means: 'steps are not marked: they were inferred from repeating kernels' },
  outside_stages: { means: 'kernels and copies are outside all ranges' },
  orphans: {
    means:
      'kernels and copies have no API call in the capture: the cause of idle time before them is unknown',
  },
  calls_clipped: { means: 'API calls start inside a range and end after it' },
  ranges_overlapping: { means: 'ranges of one thread overlap without nesting' },
  ranges_unclosed: { means: 'ranges were never closed: the last event of their thread is their end' },
  attributed_by_process_range: { means: 'work was assigned to a start/end range of its process' },
  attributed_by_thread: { means: 'work was assigned to the open range of another thread' },
  correlation_shared: { means: 'API calls share a correlation id: the first one counts' },
  activities_repeated: { means: 'kernels and copies that were recorded twice were dropped' },
  activities_without_device: { means: 'kernels and copies with an invalid device number were dropped' },
  activities_before_launch: {
    means: 'kernels and copies that start more than 1 s before their launch were dropped',
  },
  activities_after_launch: { means: 'kernels and copies start more than 1 min after their launch' },
  clocks_disagree: { means: 'kernels start before their launch: causes of idle time are uncertain' },
  graphs_opaque: {
    means: 'CUDA graphs were recorded as one row each',
    fix: 'capture with --cuda-graph-trace=node',
  },
  launch_latency: { means: 'the launch latency that was used, and from how many launches' },
  graph_node_latency: { means: 'the latency between nodes of a CUDA graph that was used' },
  attribution_doubtful: {
    means: 'the profiled pass and the clean one differ in time: bars are shares only',
    fix: 'run again on an idle machine',
  },

  // nsys, Kineto, ONNX Runtime.
  impossible_times: { means: 'nsys: events with impossible times were dropped' },
  events_not_collected: {
    means: 'nsys reports that it lost events',
    fix: 'profile a shorter part of the run',
  },
  shapes_impossible: { means: 'Kineto: operator shapes with invalid dimensions were dropped' },
  device_properties_impossible: {
    means: 'Kineto: devices have no name or an impossible size, which was ignored',
  },
  event_lists_repeated: { means: 'Kineto: a file with several lists of events was read as one trace' },
  events_damaged: { means: 'Kineto: events that are not valid JSON were skipped' },
  events_untimed: { means: 'Kineto: events without a valid start or end were dropped' },
  texts_repaired: { means: 'Kineto: names with control characters were read literally' },
  categories_unknown: { means: 'Kineto: events of unsupported categories were skipped' },
  op_ids_shared: { means: 'Kineto: operators share an id; their kernels were assigned to the first' },
  allocations_outside_ops: { means: 'Kineto: memory was allocated outside every operator' },
  calls_unrecorded: { means: 'ONNX Runtime: calls of an unfinished repeat were dropped' },
  clock_skew: { means: 'ONNX Runtime: the operator trace does not fit the recorded calls' },

  // ncu.
  ncu_repeated: { means: 'ncu: records of launches that an earlier page has were dropped' },
  ncu_replayed: { means: 'ncu replays kernels alone: its durations are not those of the run' },
  ncu_rules_left_out: { means: 'ncu: its rule texts are not read' },
  no_counters: { means: 'the session has no counters of kernels', fix: 'inferscope run --evaluator ncu' },
  launches_not_listed: { means: 'the list of kernel launches was cut' },

  // GEMM logs and shapes.
  gemm_log_unreadable: { means: 'calls without shapes in a BLAS log were skipped' },
  gemm_log_grouped: { means: 'calls of grouped GEMMs were skipped' },
  gemm_log_cut_off: { means: 'calls with a truncated block of lines were skipped' },
  no_gemm_shapes: {
    means: 'the session has no shapes of GEMMs',
    fix: 'inferscope run --evaluator torch or --gemm-log',
  },
  ops_without_shapes: { means: 'GEMM operators have no shapes', fix: 'profile with record_shapes=True' },
  several_gemm_sources: { means: 'shapes come from several sources, which must not be added up' },

  // Collectives.
  collectives_unreadable: { means: 'NCCL Inspector: lines that are not records were skipped' },
  collectives_impossible: { means: 'NCCL Inspector: records with missing or invalid fields were dropped' },
  collectives_cut_off: { means: 'NCCL Inspector: the incomplete last record of a log was skipped' },
  collectives_untimed: {
    means: 'NCCL Inspector: operations without a time are excluded from times and bandwidths',
  },
  collectives_repeated: { means: 'NCCL Inspector: duplicate records were dropped' },
  collectives_version: {
    means: 'NCCL Inspector: the logs have another format version than the supported one',
  },
  collectives_empty_log: { means: 'NCCL Inspector: a log has no records: its ranks are missing' },
  collectives_bandwidth_differs: { means: 'bandwidths in the log differ from those of nccl-tests' },
  collectives_over_link: {
    means:
      'a bus bandwidth is above the rate of the link: sizes, ranks or times of the collectives are wrong',
    fix: 'do not use the bandwidths of these operations',
  },
  collectives_not_measured: { means: 'bandwidths of collectives were not measured' },

  // Records of programs.
  record_cut_off: { means: 'the last line of a record is cut off' },
  record_newer: { means: 'lines of a newer recording protocol were skipped', fix: 'update inferscope' },
  record_unknown_type: { means: 'lines of an unknown type were skipped' },

  // Logs of vLLM.
  vllm_starts: {
    means: 'the log has several starts of the engine: the last one with memory figures was used',
  },
  vllm_no_start: { means: "the log lacks the line with the engine's configuration" },
  vllm_refused: { means: 'the log ends with an error of vLLM' },
  vllm_rank_order: { means: 'lines do not name ranks: processes were numbered in start order' },
  vllm_no_memory: { means: 'the log has no memory figures' },

  // Results of other benchmarks.
  all_requests_failed: { means: 'no request of the benchmark completed' },
  requests_failed: { means: 'failed requests are excluded from latencies' },
  requests_incomplete: { means: 'requests cut off by the end of the benchmark are excluded from latencies' },
  benchmark_cancelled: { means: 'the benchmark was cancelled: its numbers cover part of it' },
  benchmark_runs_failed: { means: 'runs of the benchmark failed and are excluded' },
  impossible_values: { means: 'negative or implausibly large numbers were dropped' },
  results_repeated: { means: 'a result equal to an earlier one in every figure was dropped' },
  recomputed_differs: { means: 'a mean in the file differs from that of its own requests' },
  token_counts_differ: { means: 'client and server count tokens differently' },
  chunk_is_not_token: { means: 'chunks contain several tokens: gaps between chunks are not ITL' },
  not_streamed: { means: 'answers were not streamed: there is no TTFT', fix: 'benchmark with streaming' },
  no_latencies: { means: 'the file has no latencies' },
  last_line_cut_off: { means: 'the last line of the file is cut off and was skipped' },
  per_token_repeated: { means: 'the file repeats latencies per token: each was counted once' },
  percentiles_defined_otherwise: { means: 'the tool does not interpolate percentiles' },
  ttft_defined_otherwise: { means: 'the tool times the first chunk, which may have no text' },
  warmup_left_out: { means: 'requests in warm-up or cool-down are excluded' },
  moments_unknown: { means: 'the file has no start times: repeats were placed end to end' },
  repeats_unknown: { means: 'the file has means without repeats', fix: 'write the results as JSON' },
  results_local_time: { means: 'the file has local times: the zone of this machine was used' },
  output_tokens_maybe_requested: { means: 'the tool may count requested tokens instead of generated ones' },
  output_throughput_unknown: { means: 'the tool counts prompt and output tokens together' },

  // Profile of the embedded engine.
  cache_copied: { means: 'the embedded engine copies its KV cache every step' },
  warmup_unstable: {
    means: 'warm-up did not settle in some launch',
    fix: 'measure on an idle machine, or raise the warm-up',
  },
  trace_shortened: { means: 'the profiled pass generated fewer tokens than the clean ones' },
  trace_unreadable: { means: 'the operator trace could not be read' },

  // Offline benchmarks.
  nothing_measured: { means: 'no point of the benchmark was measured', fix: 'see the reason in the text' },
  points_missing: { means: 'points of the benchmark were not measured' },
  launch_failed: { means: 'a launch failed: its points have fewer repeats' },
  one_launch: { means: 'one launch: intervals do not predict the next process', fix: 'use --launches' },
  batch_waits: { means: 'the engine runs the batch in parts' },
  good_utilization: { means: 'the device was busy for most of the time' },
  low_utilization: {
    means: 'the device was idle for much of the time',
    fix: 'inferscope run shows what it waits for',
  },
  high_variance: { means: 'launches or repeats differ much', fix: 'use more launches on an idle machine' },
  throttling: { means: 'clocks were throttled during the repeats', fix: 'check power limit and cooling' },
  other_process: { means: 'another process used the GPU', fix: 'free the GPU and measure again' },
  no_scaling: { means: 'a larger batch did not raise throughput' },
  out_of_memory: { means: 'a point does not fit into memory' },
  not_interleaved: { means: 'the repeats of a point ran consecutively: drift of the machine is included' },

  // Load tests.
  all_failed: { means: 'every request of a load failed', fix: 'read the log of the server' },
  requests_cancelled: { means: 'requests were stopped by Ctrl-C or a signal and are excluded' },
  client_bound: { means: 'the load generator was a limit', fix: 'run it on another or a larger machine' },
  output_shorter: {
    means: 'outputs are shorter than requested',
    fix: 'check that the server supports ignore_eos',
  },
  output_longer: { means: 'outputs are longer than max_tokens' },
  chunks_not_tokens: { means: 'chunks contain several tokens: ITL is split evenly or left out' },
  prefix_cache_carry_over: {
    means: "prompt tokens came from the server's prefix cache: TTFT and throughput look too good",
    fix: 'use another --seed, or restart the server',
  },
  seed_repeated: { means: 'the same prompts were sent to this server before', fix: 'omit --seed' },

  // Memory.
  not_measured: { means: 'a quantity was not measured', fix: 'see the reason in the text' },
  no_breakdown: { means: 'no breakdown of memory was reported' },
  dimension_disagrees: { means: 'a flag contradicts config.json' },
  flag_without_effect: { means: 'a flag has no effect with this engine' },
  dtype_of_engine: { means: 'the embedded engine computes in float32' },
  engine_fallback: { means: 'the embedded engine ran because no other is installed' },
  dtype_left_out: { means: 'some kernels do not support a requested dtype' },
  embedded_engine: { means: 'kernels were measured on the CPU with the embedded engine' },
  container_elsewhere: { means: 'the container runs on another machine: its processes are not visible' },
  container_sampling: { means: 'the tool in the container failed at times' },
  server_decides: { means: 'a running server has its own dtype, parallelism and memory share' },
  server_elsewhere: { means: 'the server runs on another machine: memory of its GPUs is unknown' },
  server_process_unknown: {
    means: 'the process of the server is not visible: GPU memory is that of all processes',
  },
  metrics_absent: { means: 'the /metrics page does not respond: KV cache use is unknown' },
  metrics_missed: { means: 'the /metrics page did not respond at times' },
  kv_capacity_unknown: { means: 'the server does not report its KV cache blocks: use is a share only' },
  partial_profile: { means: 'a memory profile is of a run that stopped early' },
  units_unknown: { means: 'a memory profile does not say what its GB are: 10^9 bytes were assumed' },
  fields_missing: { means: 'a memory profile lacks fields of schema 2.0' },

  // Rooflines and kernels.
  roofline_old: { means: 'the cached roofline is old', fix: 'inferscope roofline --fresh' },
  roofline_disturbed: {
    means: 'other processes used the CPU while the roofline was measured',
    fix: 'inferscope roofline --fresh',
  },
  roofline_not_used: {
    means: 'the roofline of --roofline is not of the captured GPU',
    fix: 'measure that GPU: inferscope roofline --json on its machine',
  },
  gpu_not_measured: { means: 'the GPU could not be measured: the roofline is that of the CPU' },
  throttled: { means: 'clocks were throttled while a peak was measured' },
  above_data_sheet: { means: 'a peak is above the data sheet' },
  below_data_sheet: {
    means: 'a peak is far below the data sheet',
    fix: 'inferscope roofline --fresh on an idle machine',
  },
  wide_spread: { means: 'runs of one operation vary strongly' },
  unsupported: { means: 'the framework or GPU does not support an operation' },
  gpus_differ: { means: 'GPUs of one model reach different peaks' },
  kernel_process_died: { means: 'a process that measured kernels died' },
  kernels_throttled: { means: 'clocks were throttled while kernels were measured' },
  kernels_wrong: { means: 'results differ from the float64 reference by more than rounding' },
  runs_cut: { means: 'cases reached the time limit before all their runs', fix: 'raise --max-seconds' },
  roof_exceeded: { means: 'kernels are above their roof: it is too low, or data was in a cache' },
  no_roofline: { means: 'no roofline is known: there are no shares of it', fix: 'inferscope roofline' },

  // Estimates and predictions.
  beyond_positions: {
    means: 'sequences are longer than the model allows',
    fix: 'shorter --input-len or --output-len',
  },
  config_keys_unread: { means: 'keys of the model config are not supported: sizes may be off' },
  decoder_only: { means: 'parts of the model other than its decoder are not counted' },
  vision_weights_only: { means: 'the vision tower counts in weights, not in FLOPs and times' },
  files_differ: { means: 'model files and config disagree: the size of the weights is that of the files' },
  headers_not_read: { means: 'headers of the model files were not read: sizes are those of the config' },
  quantization_unknown: { means: 'the quantization is not supported: sizes are of unquantized weights' },
  not_calibrated: { means: 'the prediction is not calibrated', fix: 'give a kernel table with --kernels' },
  data_sheet_roofs: { means: 'roofs are data-sheet values', fix: 'inferscope roofline on that machine' },
  beyond_table: { means: 'kernels are outside the measured table: their times are extrapolated' },
  other_dtype: {
    means: 'the prediction is in another dtype than the session ran in: measured times are not compared',
  },
  other_sizes: {
    means: 'the prediction is for other sizes than the session ran: measured times are not compared',
  },
  roofline_above_measurement: {
    means: 'the roofline is above the measurement: model, dtype or roofs do not match',
  },

  // Analyses and comparisons.
  over_the_roof: {
    means: 'MFU or MBU is over 100 %, which is impossible',
    fix: 'check model, dtype and roofs',
  },
  no_waterfall: { means: 'a stage or the session has no waterfall to predict from' },
  no_common_stage: { means: 'the sessions have no stage in common' },
  other_workload: { means: 'the sessions ran different workloads' },
  slower_clean_run: {
    means: 'a stage took longer without the profiler than under it, which makes its bars longer',
  },
  operators_under_profiler: {
    means: 'classes and operators of a compared session are as recorded under the profiler, its bars are not',
  },
  times_under_profiler: {
    means: 'times are those of profiled runs: no clean one was recorded, or the profilers differ',
  },
  shown_rank: { means: 'of a session with several ranks, one is compared, and why' },
  no_roofline_on_a_side: { means: 'a compared session has no roofline, another has one' },
  several_batch_sizes: { means: 'a stage ran with several batch sizes: its mean is not meaningful' },
  operators_not_recorded: { means: 'one of the sessions has no operators or kernels to compare' },
} as const satisfies Readonly<Record<string, Meaning>>;

export type IssueCode = keyof typeof issueCodes | ErrorCode;

/** Issues of each launch's recording. Their texts name nothing, so two of one code differ only in numbers. */
export const launchIssues: ReadonlySet<IssueCode> = new Set([
  'machine_not_idle',
  'cpu_steal',
  'late_samples',
  'sampling_cost',
]);
