/**
 * The one table model for every source (docs/reference/tables.md is generated from this file).
 * Times are BIGINT nanoseconds since the session's start; they stay exact as JS doubles for 104 days.
 * Every event row carries the event keys; a correlation id is unique only with (capture_id, pid).
 */
import { big, type ColumnType, flag, int, type JsOf, num, type Table, text } from './columns.js';

const runKeys = {
  execution_id: text('one run of the workload; no query sums over executions'),
  capture_id: text("one tool's recording of an execution"),
  host: text('host name, or a substitute for it'),
  pid: big('process id'),
  rank: int('rank in the process group, 0 when there is one process'),
};

const eventKeys = {
  ...runKeys,
  tid: big('thread id'),
  device: int('device ordinal; null for host events'),
  context: big('device context'),
};

const interval = {
  start_ns: big("start, ns since the session's start"),
  dur_ns: big('duration, ns'),
};

export const tables = {
  kernels: {
    doc: 'Device kernels, one row per launch.',
    columns: {
      ...eventKeys,
      ...interval,
      exclusive_ns: big('time in which this kernel is the one counted (waterfall.md), ns'),
      stream: big('stream id'),
      name: text('full demangled name'),
      short_name: text('name without template arguments'),
      class: text(
        'kernel class: gemm, attention, norm, elementwise, copy, …, by its name, else by the operator that launched it; graph is a CUDA graph traced as one row',
      ),
      tile: text('MxNxK of the tile, where the name of a GEMM shows it'),
      dtype: text('type of the inputs, where the name shows it'),
      grid: text('x,y,z blocks'),
      block: text('x,y,z threads'),
      registers: int('registers per thread'),
      shared_mem_bytes: big('static + dynamic shared memory per block'),
      correlation: big('correlation id of the launching API call'),
      api_start_ns: big('start of the launching API call; null for an orphan'),
      api_dur_ns: big('duration of the launching API call'),
      stage_id: big(
        'innermost range that launched it, of any kind (stages.phase_id leads to prefill, decode, …)',
      ),
      attributed_by: text(
        'how its stage was found: api, process_range, thread, time; null outside all ranges',
      ),
      op_id: big('framework operator that launched it'),
      graph_id: big('CUDA graph it belongs to'),
      graph_node: big('CUDA graph node id; 0: a node without a recorded id'),
    },
  },
  copies: {
    doc: 'Memory copies and memsets.',
    columns: {
      ...eventKeys,
      ...interval,
      exclusive_ns: big('exposed time of this copy, ns'),
      stream: big('stream id'),
      kind: text('HtoD, DtoH, DtoD, HtoH, PtoP, memset'),
      src_kind: text('pageable, pinned, device, managed'),
      dst_kind: text('pageable, pinned, device, managed'),
      bytes: big('bytes moved'),
      correlation: big('correlation id of the API call'),
      api_start_ns: big('start of the API call; null for an orphan'),
      api_dur_ns: big('duration of the API call'),
      stage_id: big('innermost range that launched it, of any kind'),
      attributed_by: text('as in kernels'),
      op_id: big('framework operator that launched it'),
      graph_node: big('CUDA graph node id; 0: a node without a recorded id'),
    },
  },
  api_calls: {
    doc: 'Runtime and driver API calls on the host.',
    columns: {
      ...eventKeys,
      ...interval,
      name: text('API name without version suffix'),
      api: text('runtime, driver, hip, …'),
      correlation: big('correlation id'),
      stage_id: big('stage it ran in'),
      op_id: big('framework operator it ran in'),
    },
  },
  ops: {
    doc: 'Operators of a framework or of the embedded engine, one row per call.',
    columns: {
      ...eventKeys,
      ...interval,
      op_id: big('unique within the capture'),
      parent_op_id: big('enclosing operator'),
      stage_id: big('stage it ran in'),
      name: text('node or operator name, e.g. /layers.3/attn/qkv or aten::mm'),
      op_type: text('operator type, e.g. MatMul'),
      class: text('operator class, same vocabulary as kernels.class'),
      layer: int('decoder layer; null outside the layers'),
      input_shapes: text('JSON, e.g. [[1,128,512],[512,1536]]'),
      output_shapes: text('JSON'),
      input_types: text('JSON, e.g. ["float","float"]'),
      device_dur_ns: big('time on the device; null for host operators'),
      self_dur_ns: big('duration without the operators and API calls inside it'),
      allocated_bytes: big('bytes its own code allocated on the device, where the profiler reports it'),
      output_bytes: big('bytes of its outputs, where the engine reports it'),
      parameter_bytes: big('bytes of constant inputs, where the engine reports it'),
      provider: text('execution provider or backend'),
    },
  },
  stages: {
    doc: 'Phases of the workload: prefill, each decode step, sampling, load, warm-up.',
    columns: {
      ...runKeys,
      tid: big('thread id'),
      stage_id: big('unique within the capture'),
      parent_id: big('enclosing stage'),
      phase_id: big(
        'nearest enclosing stage, itself included, of a kind that is not other; null outside all of them',
      ),
      kind: text('prefill, decode, mixed, training, sampling, load, warmup or other'),
      raw_name: text("the workload's own name for it"),
      step_index: int('decode step within its iteration, from 0'),
      iteration: int('repeat of the workload, from 0'),
      start_ns: big("start, ns since the session's start"),
      end_ns: big("end, ns since the session's start"),
      device: int('the device its work ran on, the busiest one of several; null without device work'),
      device_start_ns: big('start of the first device activity launched in it, ranges inside it included'),
      device_end_ns: big('end of the last one'),
      device_dur_ns: big(
        'between two device events around its work (CUDA events), where the engine sets them',
      ),
      batch_size: int('sequences'),
      new_tokens: int('tokens computed, over all sequences'),
      context_tokens_sum: big('context length attended to, summed over sequences'),
      padding_tokens: big('positions of a prompt batch that are padding, where the host has the mask'),
      warmup: flag('true when left out of the statistics'),
      confidence: num(
        'of a step that was inferred from the repeating sequence of kernels, 0 to 1: share of the kernels between the first and the last step that repeat; null: marked by the program, an engine or hooks',
      ),
    },
  },
  gaps: {
    doc: 'Intervals in which nothing of interest ran, with their cause. Gaps of a device are split into the parts of waterfall.md, which follow each other in the order of the columns and sum to dur_ns; cause is the largest.',
    columns: {
      ...eventKeys,
      ...interval,
      cause: text('bar id of the waterfall: launch_overhead, synchronization, host.runtime_dispatch, …'),
      stage_id: big('stage of the activity that ends it'),
      before_op_id: big('operator or kernel that ends the gap'),
      correlation: big('API call held responsible'),
      synchronization_ns: big(
        'device gaps: part before the API call, launching thread in a synchronizing call',
      ),
      host_ns: big('device gaps: part before the API call, launching thread elsewhere'),
      launch_overhead_ns: big('device gaps: part inside the API call'),
      launch_latency_ns: big('device gaps: from its return, up to the launch latency of the device'),
      device_dependency_ns: big('device gaps: the rest, work that was queued already'),
      unattributed_ns: big('device gaps: no API call is known for the activity that ends it'),
    },
  },
  counters: {
    doc: 'Hardware counters per kernel (ncu), long form.',
    columns: {
      ...eventKeys,
      kernel_name: text('kernel name'),
      launch_ordinal: big('how many launches of this name came before'),
      nvtx_path: text('NVTX ranges around the launch'),
      metric: text('metric name'),
      value: num('value'),
      unit: text('base unit'),
    },
  },
  gemms: {
    doc: 'Matrix multiplications with their shapes.',
    columns: {
      ...eventKeys,
      m: big('rows of the output'),
      n: big('columns of the output'),
      k: big('inner dimension'),
      batch: big('batched GEMM count'),
      dtype: text('type of the inputs'),
      compute_type: text('accumulation type'),
      layout: text('TN, NN, …'),
      algo: text('algorithm'),
      tile: text('tile MxNxK'),
      calls: big('calls of this shape'),
      dur_ns: big('total time, ns; null when the source has none'),
      op_id: big('operator'),
      stage_id: big('stage'),
    },
  },
  collectives: {
    doc: 'Collectives and point-to-point operations that a communication library recorded, or that the timelines of several ranks show (import --ranks, or several processes of one execution), one row per operation and rank.',
    columns: {
      ...runKeys,
      rank: int('rank in the communicator; of timelines the rank in the process group, as in every table'),
      communicator: text('id of the communicator, the same on all its ranks'),
      communicator_name: text('name that the program gave it'),
      ranks: int('ranks of the communicator'),
      nodes: int('hosts of the communicator'),
      operation: text(
        'AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, Send, Recv, …; of timelines "Send and Recv": both ends of one transfer',
      ),
      sequence: big(
        'number of the call: counted per communicator and operation, of Send and Recv together per rank, of timelines from one rank to another; a number that is missing was not recorded',
      ),
      peer: int('the other rank of Send and Recv; null for collectives'),
      bytes: big('count × size of the type as the call has it: of AllGather and ReduceScatter one rank'),
      written_ns: big(
        "when the row was written, at the end of the operation or later, ns since the session's start",
      ),
      start_ns: big(
        "start by the clock of its host, ns since the session's start; null where the source has none",
      ),
      dur_ns: big(
        'duration on this rank, waiting for the other ranks included; whole µs from NCCL Inspector',
      ),
      timed_by: text('clock of the duration: kernel_gpu, kernel_cpu, collective_cpu, call_cpu'),
      algorithm_bytes_per_s: num('as the source gives it'),
      bus_bytes_per_s: num('as the source gives it'),
      received_bytes: big('bytes that this rank received in its buffer; from timelines'),
      device: int('device ordinal; from timelines'),
      stage_id: big('innermost range that launched it; from timelines'),
      exposed_ns: big('part of dur_ns with no compute on the device at the same time; from timelines'),
    },
  },
  telemetry: {
    doc: 'Sampled time series of host and devices, long form.',
    columns: {
      ...runKeys,
      t_ns: big("sample time, ns since the session's start"),
      scope: text('host, cpu0…, process, gpu0…'),
      metric: text('utilization_percent, clock_mhz, rss_bytes, power_w, …'),
      value: num('value'),
    },
  },
  memory: {
    doc: 'Memory in use over time, and the three reported points.',
    columns: {
      ...runKeys,
      device: int('device ordinal; null for host memory'),
      t_ns: big("sample time, ns since the session's start"),
      kind: text('rss, anonymous, file, peak_rss, allocated, reserved, used'),
      bytes: big('bytes'),
      point: text('baseline, post_warmup or peak on the rows that are those points'),
      source: text('where the number comes from, e.g. /proc/<pid>/status VmHWM'),
      blocks: int('blocks of the allocator that the bytes were in, of kind allocation'),
    },
  },
  iterations: {
    doc: 'One row a repeat of the workload (one request or one batch).',
    columns: {
      ...runKeys,
      iteration: int('from 0, over all launches of the execution'),
      launch: int('process launch it ran in, from 0: the unit of between-process spread'),
      warmup: flag('true when left out of the statistics'),
      batch_size: int('sequences'),
      input_len: int('prompt tokens per sequence'),
      output_len: int('generated tokens per sequence'),
      start_ns: big("start, ns since the session's start"),
      end_ns: big('last token done'),
      ttft_ns: big('start to first token, ns'),
      tpot_ns: num('(last token − first token) / (output_len − 1), ns; null for one token'),
      point: text('the point of a benchmark it belongs to, e.g. b4-p128-o64'),
    },
  },
  points: {
    doc: 'How each point of a benchmark ended in each process launch.',
    columns: {
      ...runKeys,
      point: text('b<batch>-p<prompt tokens>-o<output tokens>'),
      launch: int('process launch, from 0'),
      outcome: text('measured, out_of_memory, failed, skipped or stopped'),
      text: text("why, in the engine's words"),
      warmup_iterations: int('repeats before the timed ones'),
      stable: flag('whether the warm-up settled'),
      interleaved: flag('false when its repeats ran in a row, not in turn with the other points'),
      memory_bytes: big('most device memory the point needed, model included'),
      memory_source: text('who said so'),
    },
  },
  device_work: {
    doc: "What the device did in one watched iteration of a benchmark's point (framework profiler, after the timed iterations), by kind of stage.",
    columns: {
      ...runKeys,
      point: text('the point'),
      launch: int('process launch, from 0'),
      kind: text('prefill, decode, …'),
      stages: int('stages of the kind in the iteration'),
      kernels: int('kernels launched in them'),
      kernel_ns: big('sum of kernel durations'),
      copies: int('copies and memsets'),
      copy_ns: big('sum of their durations'),
      busy_ns: big('time in which at least one of them ran'),
      wall_ns: big('host time of the stages while they were watched'),
    },
  },
  requests: {
    doc: 'One row per request of a serving benchmark.',
    columns: {
      ...runKeys,
      request_id: text('id'),
      scheduled_ns: big('when the load plan wanted it sent'),
      sent_ns: big('when it was sent'),
      first_token_ns: big('first generated text'),
      end_ns: big('last content'),
      input_tokens: int('prompt tokens, by usage of the server, else by the local tokenizer'),
      output_tokens: int('generated tokens, by usage of the server, else by the local tokenizer'),
      status: text('ok, or the kind of failure'),
      error: text('message of the failure'),
      warmup: flag('true when left out of the statistics'),
      first_byte_ns: big('first byte of the answer'),
      ttft_ns: big('first_token_ns − sent_ns'),
      tpot_ns: num('(end_ns − first_token_ns) / (output_tokens − 1); null for less than two tokens'),
      itl_ns: text('JSON list of the gaps between tokens, ns; a chunk of k tokens gives k equal gaps'),
      itl_split: flag('true when a chunk of several tokens was split'),
      chunks: int('chunks with generated text'),
      requested_input_tokens: int('prompt length asked for; null when given in words'),
      requested_output_tokens: int('max_tokens'),
      tokenizer_input_tokens: int('prompt tokens by the local tokenizer'),
      tokenizer_output_tokens: int('generated tokens by the local tokenizer'),
      cached_tokens: int('prompt tokens the server took from its prefix cache, where usage reports it'),
      finish_reason: text('stop, length, … as the server says'),
    },
  },
  metrics: {
    doc: "Numbers of result files that other benchmark tools wrote, long form. A name of ours means our definition (docs/reference/metrics.md); the rest keep the tool's name before a dot.",
    columns: {
      ...runKeys,
      point: int('load point, test or repeat of the file, from 0'),
      label: text('what distinguishes it, e.g. concurrency 8 or pp512'),
      name: text('ttft, tpot, itl, e2e, output_throughput, …, or vllm.itl, guidellm.request_latency, …'),
      defined_as_ours: flag('true when the number may be compared with ours of the same name'),
      statistic: text(
        'value, mean, median, sd (n − 1), sd_population, min, max, p90 (type 7), p90_step (not interpolated), …',
      ),
      value: num('value'),
      unit: text('ms, s, tok/s, req/s, tokens, …'),
      n: int('how many values it sums up; null when the file does not say'),
      definition: text('what was measured, in words'),
      source: text('field of the file, or recomputed from its requests'),
    },
  },
  microbenchmarks: {
    doc: 'What this machine reaches: roofline and kernel measurements, one row per case.',
    columns: {
      ...runKeys,
      device: int('device ordinal; null for the CPU'),
      name: text('gemm, read_bandwidth, …'),
      dtype: text('computed in'),
      shape: text('e.g. 1024x1024x1024'),
      threads: int('CPU threads'),
      bytes: big('bytes moved a run'),
      flops: big('floating or integer operations a run'),
      runs: int('timed runs'),
      median_ns: num('median of the runs'),
      min_ns: num('fastest run'),
      sd_ns: num('standard deviation of the runs'),
      value: num('achieved rate'),
      unit: text('FLOP/s or B/s'),
      case_id: text('unique in its execution'),
      backend: text('flash, efficient, cudnn, math; null where the framework chose'),
      params: text('JSON of its sizes'),
      outcome: text('measured, out_of_memory, unsupported, failed, wrong or stopped; null in older sessions'),
      text: text('why it was not measured, or what is doubtful'),
      start_ns: big('start of the timed part'),
      end_ns: big('its end'),
      mean_ns: num('mean of the runs'),
      max_ns: num('slowest run'),
      p5_ns: num('5th percentile (type 7)'),
      p95_ns: num('95th percentile'),
      samples_ns: text('JSON list of the runs'),
      method: text('events, graph or host'),
      per_sample: int('operations between two readings of the clock'),
      rotated_bytes: big('bytes of all copies of the inputs taken in turn'),
      peak_memory_bytes: big('most device memory during the case'),
      max_error: num('against float64: largest difference over the largest magnitude'),
    },
  },
} satisfies Record<string, Table>;

export type TableName = keyof typeof tables;
export const tableNames = Object.keys(tables) as TableName[];

/** A row as importers give it: columns left out are null. */
export type Row<T extends TableName> = {
  [C in keyof (typeof tables)[T]['columns']]?:
    | ((typeof tables)[T]['columns'][C] extends { type: infer K extends ColumnType } ? JsOf<K> : never)
    | null;
};

/** Where importers put rows. Implemented by src/session/; rows are kept in columns and spilled in chunks. */
export interface TableSink {
  append<T extends TableName>(table: T, row: Row<T>): void;
}
