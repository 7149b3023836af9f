import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema, issueSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { workloadSchema } from '../manifest.js';
import { phaseKindSchema } from './trace-phase.js';
import { traceMemorySchema } from './trace-memory.js';
import { traceTelemetrySchema, traceTimelineSchema } from './trace-timeline.js';
import { utilizationSchema } from './utilization.js';

export { phaseKinds, phaseKindSchema, type PhaseKind } from './trace-phase.js';

const opClass = z.enum(opClasses);
const count = z.number().int();

/** Of durations, ns. sd: sample standard deviation, null for one value. */
export const spreadSchema = z.object({
  count,
  total_ns: z.number(),
  mean_ns: z.number(),
  median_ns: z.number(),
  min_ns: z.number(),
  max_ns: z.number(),
  sd_ns: z.number().nullable(),
});

/** What was looked at: never a sum over executions, captures or ranks. */
export const traceSourceSchema = z.object({
  /** Kernels, stages, gaps. */
  attribution: z.object({
    execution_id: z.string(),
    capture_id: z.string(),
    tool: z.string(),
    purpose: z.string(),
  }),
  /** Execution whose wall times count; null where only the profiled one has stages, and times hold its overhead. */
  timing: z.object({ execution_id: z.string() }).nullable(),
  /** False where the capture has operators and nothing ran on a device: all that is left are phases and operators. */
  gpu_used: z.boolean(),
  /** One rank and one device: everything below but `devices` is of them. */
  focus: z.object({ rank: count.nullable(), device: count.nullable() }),
  /** Why these, in sentences. */
  why: z.array(z.string()),
  executions: z.array(
    z.object({
      execution_id: z.string(),
      purpose: z.string(),
      captures: z.array(z.object({ capture_id: z.string(), tool: z.string(), kernels: count })),
      used_for: z.enum(['attribution', 'timing']).nullable(),
    }),
  ),
  /** First and last device activity of the focus, ns since the session's start. */
  start_ns: z.number(),
  end_ns: z.number(),
});

/** One row a rank and device of the attributed capture. */
export const traceDeviceSchema = z.object({
  rank: count.nullable(),
  device: count.nullable(),
  focus: z.boolean(),
  name: z.string().nullable(),
  sm_count: figureSchema,
  peak_bandwidth_bytes_per_s: figureSchema,
  /** Dense data-sheet peak for the workload's dtype. */
  peak_flops_per_s: figureSchema,
  streams: count,
  kernels: count,
  copies: count,
  kernel_ns: z.number(),
  copy_ns: z.number(),
  /** At least one kernel or copy ran: Σ exclusive_ns. */
  busy_ns: z.number(),
  /** First to last activity. */
  span_ns: z.number(),
});

/** Time of a mean instance, ns. busy + idle = wall; the parts of idle sum to it. */
const splitFields = {
  busy_ns: z.number(),
  /** Kernels other than communication. */
  compute_ns: z.number(),
  exposed_comm_ns: z.number(),
  exposed_copy_ns: z.number(),
  idle_ns: z.number(),
  /** Of the wall time, 0 to 1. */
  idle_share: z.number(),
};

export const causeSchema = z.object({
  /**
   * Bar id of the waterfall: synchronization, host, launch_overhead, launch_latency, device_dependency, unattributed;
   * host.start_up, host.shut_down: before the first device activity of the capture, and after the last.
   */
  id: z.string(),
  ns: z.number(),
  /** Of the wall time. */
  share: z.number(),
});

export const phaseInstanceSchema = z.object({
  stage_id: count,
  label: z.string(),
  iteration: count.nullable(),
  step_index: count.nullable(),
  start_ns: z.number(),
  wall_ns: z.number(),
  ...splitFields,
  kernels: count,
  copies: count,
});

/** All instances of one kind in the focus; figures are of a mean instance. */
export const tracePhaseSchema = z.object({
  kind: phaseKindSchema,
  instances: count,
  /** Window of an instance: decode steps run from start to start of the next (docs/measurement.md). */
  wall: spreadSchema,
  /** host: ranges of the program, which waits for the device in every step. device: first activity to first activity. */
  clock: z.enum(['host', 'device']),
  clock_why: z.string(),
  /** The same without a profiler. */
  clean_ms: figureSchema,
  ...splitFields,
  idle_by_cause: z.array(causeSchema),
  /** Largest part of idle_by_cause; null when never idle. */
  main_cause: z.string().nullable(),
  /** A mean instance's. */
  kernels: z.number(),
  copies: z.number(),
  /** API calls that launched kernels; fewer than kernels with CUDA graphs. */
  launches: z.number(),
  /** Σ durations of its kernels. */
  kernel_ns: z.number(),
  /** The instances by batch size, where there are several sizes, smallest first; empty otherwise. */
  by_batch: z.array(
    z.object({
      batch_size: count,
      wall: spreadSchema,
      busy_ns: z.number(),
      idle_ns: z.number(),
      idle_share: z.number(),
      kernels: z.number(),
      launches: z.number(),
    }),
  ),
  /** The first ones, at most 512. */
  rows: z.array(phaseInstanceSchema),
});

export const kernelPhaseSchema = z.object({
  kind: phaseKindSchema,
  count,
  total_ns: z.number(),
  /** Of a mean instance. */
  per_instance: z.number(),
  per_instance_ns: z.number(),
});

export const traceKernelSchema = spreadSchema.extend({
  name: z.string(),
  short_name: z.string(),
  class: opClass,
  tile: z.string().nullable(),
  dtype: z.string().nullable(),
  exclusive_ns: z.number(),
  /** Of all kernels' time. */
  share: z.number(),
  phases: z.array(kernelPhaseSchema),
});

/** Kernel classes of one phase kind, or of the whole capture (null). */
export const phaseClassesSchema = z.object({
  kind: phaseKindSchema.nullable(),
  instances: count,
  rows: z.array(
    z.object({
      class: opClass,
      count,
      total_ns: z.number(),
      exclusive_ns: z.number(),
      /** Of the kernel time of this phase. */
      share: z.number(),
      per_instance: z.number(),
      per_instance_ns: z.number(),
    }),
  ),
});

export const traceCopySchema = spreadSchema.extend({
  /** HtoD, DtoH, DtoD, HtoH, PtoP, memset. */
  kind: z.string(),
  /** The host side's memory (pageable, pinned, managed), device where there is none; null where not recorded. */
  memory: z.string().nullable(),
  /** null: whole capture. */
  phase: phaseKindSchema.nullable(),
  bytes: z.number(),
  exclusive_ns: z.number(),
  /** bytes / total time. */
  bandwidth_bytes_per_s: figureSchema,
});

export const apiCallSchema = spreadSchema.extend({
  name: z.string(),
  api: z.string().nullable(),
  /** Of all calls' time. */
  share: z.number(),
});

export const launchPhaseSchema = z.object({
  kind: phaseKindSchema,
  instances: count,
  /** API calls that launched kernels, per instance. */
  launches: z.number(),
  launches_min: z.number(),
  launches_max: z.number(),
  kernels: z.number(),
  /** Of the launches, those of a whole CUDA graph. */
  graph_launches: z.number(),
  /** Kernels / decoder layers of the model. */
  kernels_per_layer: figureSchema,
  launches_per_layer: figureSchema,
  /** Duration of the launching API calls. */
  api: spreadSchema.nullable(),
  /** Return of the API call to the kernel's begin, of the kernels that began after it (nsys: queue time). */
  queue: spreadSchema.nullable(),
});

/** One kernel's launches, as nsys's cuda_kern_exec_sum counts them. */
export const launchKernelSchema = z.object({
  kernel: z.string(),
  short_name: z.string(),
  api_name: z.string().nullable(),
  count,
  /** Begin of the call to the end of the later of the two. */
  total: spreadSchema,
  api: spreadSchema,
  queue: spreadSchema.nullable(),
  kernel_spread: spreadSchema,
});

export const launchesSchema = z.object({
  layers: figureSchema,
  phases: z.array(launchPhaseSchema),
  kernels: z.array(launchKernelSchema),
});

export const idleSchema = z.object({
  /** What ran on the host when the device waited, by the operator or call that ended the gap. */
  waits: z.array(
    z.object({
      phase: phaseKindSchema,
      cause: z.string(),
      /** Operator that ended the gaps; null where the capture has none. */
      operator: z.string().nullable(),
      /** API call that launched what ended them: the commonest of the 32 longest; null where it says nothing (latency). */
      api_name: z.string().nullable(),
      count,
      total_ns: z.number(),
      longest_ns: z.number(),
    }),
  ),
  longest: z.array(
    z.object({
      start_ns: z.number(),
      dur_ns: z.number(),
      cause: z.string().nullable(),
      phase: phaseKindSchema,
      operator: z.string().nullable(),
      api_name: z.string().nullable(),
    }),
  ),
});

export const overlapSchema = z.object({
  streams: z.array(
    z.object({
      context: count.nullable(),
      stream: count.nullable(),
      kernels: count,
      kernel_ns: z.number(),
      copies: count,
      copy_ns: z.number(),
      start_ns: z.number(),
      end_ns: z.number(),
    }),
  ),
  compute_ns: z.number(),
  /** Compute kernels that ran beside other compute kernels: Σ durations − time at least one ran. */
  compute_beside_compute_ns: z.number(),
  comm_ns: z.number(),
  /** Communication hidden behind computation. */
  comm_hidden_ns: z.number(),
  copy_ns: z.number(),
  copy_hidden_ns: z.number(),
  /** Several streams carry kernels and yet hardly two run at once (under 1 % of kernel time). */
  serialised: z.boolean(),
  text: z.string(),
});

export const operatorVerdictSchema = z.enum(['scheduling', 'kernels', 'allocation', 'cpu']);

export const operatorSchema = z.object({
  name: z.string(),
  op_type: z.string().nullable(),
  count,
  /** With what it calls. */
  cpu_ns: z.number(),
  self_cpu_ns: z.number(),
  /** Kernels and copies launched by it itself. */
  device_ns: z.number(),
  kernels: count,
  /** Device memory its own code allocated; null where not recorded. */
  allocated_bytes: z.number().nullable(),
  /** API calls in its own code that allocate or free device memory. */
  allocation_ns: z.number(),
  /** Most frequent first. */
  shapes: z.array(z.object({ input_shapes: z.string(), count, device_ns: z.number() })),
  /** Enclosing operators and Python frames of its costliest call, outermost first. */
  call_path: z.array(z.string()),
  /** What costs: host time of its own against time on the device against allocator calls; cpu where no GPU was used. */
  verdict: operatorVerdictSchema,
});

export const operatorsSchema = z.object({
  phase: phaseKindSchema.nullable(),
  rows: z.array(operatorSchema),
  verdict: operatorVerdictSchema.nullable(),
  text: z.string(),
});

export const shortKernelsSchema = z.object({
  threshold_ns: z.number(),
  phases: z.array(
    z.object({
      kind: phaseKindSchema.nullable(),
      kernels: count,
      short: count,
      count_share: z.number(),
      time_share: z.number(),
    }),
  ),
});

export const attributionSchema = z.object({
  /** By how the stage of a kernel was found; `how` null: in no range. */
  methods: z.array(z.object({ how: z.string().nullable(), kernels: count, kernel_ns: z.number() })),
  /** Kernels without the API call that launched them. */
  orphans: count,
  /** Of kernel time, with a class other than `other`. */
  classified_share: figureSchema,
  /** Of the session's issues, those that change what this document says. */
  losses: z.array(issueSchema),
});

/** A sentence for the summary, with the numbers it rests on. */
export const headlineSchema = z.object({
  /** launches_per_layer, class_shares, idle, short_kernels, overlap, copies, operators, throttling, … */
  id: z.string(),
  phase: phaseKindSchema.nullable(),
  text: z.string(),
  /** ms of a mean instance at stake; null where it is not a matter of time. */
  at_stake_ms: z.number().nullable(),
});

export const traceResultSchema = z.object({
  session: z.object({
    id: z.string(),
    name: z.string().nullable(),
    title: z.string(),
    kind: z.string(),
    started_at: z.string(),
    status: z.enum(['complete', 'interrupted', 'failed']),
  }),
  workload: workloadSchema.nullable(),
  source: traceSourceSchema,
  headlines: z.array(headlineSchema),
  devices: z.array(traceDeviceSchema),
  /** In the order load, warmup, prefill, decode, mixed, sampling, other; then outside. */
  phases: z.array(tracePhaseSchema),
  /** By total time, at most 200; `kernels_total` counts them all. */
  kernels: z.array(traceKernelSchema),
  kernels_total: z.object({ names: count, count, total_ns: z.number() }),
  /** First the whole capture, then by phase. */
  classes: z.array(phaseClassesSchema),
  copies: z.array(traceCopySchema),
  api_calls: z.array(apiCallSchema),
  launches: launchesSchema,
  idle: idleSchema,
  overlap: overlapSchema,
  /** Null where the capture has no operators (nsys). */
  operators: operatorsSchema.nullable(),
  short_kernels: shortKernelsSchema,
  attribution: attributionSchema,
  timeline: traceTimelineSchema.nullable(),
  telemetry: traceTelemetrySchema.nullable(),
  environment: z.array(z.object({ label: z.string(), value: z.string() })),
  /** Commands worth typing next, each with what it would tell. */
  next_steps: z.array(z.object({ command: z.string(), why: z.string() })),
  /** MFU and MBU by stage (1.1); null where there is no prefill and no decode step. */
  utilization: utilizationSchema.nullable().optional(),
  /** What the framework's allocator held (1.2); null where no capture recorded it. */
  memory: traceMemorySchema.nullable().optional(),
});

export const traceVersion = '1.2';
export const traceDocumentSchema = documentSchema('trace', traceVersion, traceResultSchema);

export type Spread = z.infer<typeof spreadSchema>;
export type TraceResult = z.infer<typeof traceResultSchema>;
export type TraceSource = z.infer<typeof traceSourceSchema>;
export type TraceDevice = z.infer<typeof traceDeviceSchema>;
export type TracePhase = z.infer<typeof tracePhaseSchema>;
export type PhaseInstance = z.infer<typeof phaseInstanceSchema>;
export type TraceKernel = z.infer<typeof traceKernelSchema>;
export type PhaseClasses = z.infer<typeof phaseClassesSchema>;
export type TraceCopy = z.infer<typeof traceCopySchema>;
export type ApiCall = z.infer<typeof apiCallSchema>;
export type Launches = z.infer<typeof launchesSchema>;
export type LaunchKernel = z.infer<typeof launchKernelSchema>;
export type Idle = z.infer<typeof idleSchema>;
export type Overlap = z.infer<typeof overlapSchema>;
export type Operators = z.infer<typeof operatorsSchema>;
export type Operator = z.infer<typeof operatorSchema>;
export type ShortKernels = z.infer<typeof shortKernelsSchema>;
export type TraceAttribution = z.infer<typeof attributionSchema>;
export type Headline = z.infer<typeof headlineSchema>;
export type TraceTimeline = z.infer<typeof traceTimelineSchema>;
export type TraceTelemetry = z.infer<typeof traceTelemetrySchema>;
