import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

const count = z.number().int();
const share = z.number();

/** What only the recording knows; kept as the artifact `monitor` of its session. */
export const monitorPlanSchema = z.object({
  /** live: sampled by inferscope. files: recordings of other tools. */
  source: z.enum(['live', 'files']),
  /** What read the GPUs: NVML, amd-smi, rocm-smi; null without GPUs. */
  tool: z.string().nullable(),
  driver: z.string().nullable(),
  files: z.array(z.string()),
  /** Asked for. */
  hz: z.number().nullable(),
  /** Time for one sample of all GPUs, and of the host, of the sampling process. */
  sample_cost_us: z.object({
    gpus: z.object({ mean: z.number(), max: z.number() }).nullable(),
    host: z.object({ mean: z.number(), max: z.number() }).nullable(),
  }),
  gpus: z.array(z.object({ scope: z.string(), name: z.string().nullable() })),
  /** Why there are none. */
  no_gpus: z.object({ code: z.string(), text: z.string() }).nullable(),
  /** The command of --while; null when nothing was started. */
  program: z
    .object({
      command: z.array(z.string()),
      exit_code: count.nullable(),
      signal: z.string().nullable(),
      start_ns: z.number(),
      end_ns: z.number(),
    })
    .nullable(),
  /** Processes seen on GPUs. `here`: it is this machine's process of that number; null where that cannot be told. */
  processes: z.array(z.object({ pid: count, name: z.string().nullable(), here: z.boolean().nullable() })),
  /** nested: a container's, where the driver's process ids may be those of the host. */
  pid_namespace: z.enum(['initial', 'nested', 'unknown']),
});

/** A series over the recording. `mean` is over time, the percentiles are of samples (type 7). */
export const monitorMetricSchema = z.object({
  metric: z.string(),
  unit: z.string(),
  n: count,
  mean: z.number(),
  min: z.number(),
  p5: z.number(),
  median: z.number(),
  p95: z.number(),
  max: z.number(),
  first: z.number(),
  last: z.number(),
});

const period = z.object({ start_ns: z.number(), dur_ns: z.number() });

export const monitorDeviceSchema = z.object({
  /** gpu0, gpu0.mig1 */
  scope: z.string(),
  name: z.string().nullable(),
  headline: z.string(),
  metrics: z.array(monitorMetricSchema),
  /** Periods with utilisation under `thresholds.idle_percent` for at least `thresholds.idle_ms`. */
  idle: z.object({
    share: figureSchema,
    count,
    longest_ms: z.number().nullable(),
    /** The longest ones, in the order of time. */
    periods: z.array(period),
  }),
  /** Periods in which something held the clocks down. */
  throttling: z.object({
    share: figureSchema,
    count,
    reasons: z.array(z.object({ reason: z.string(), words: z.string(), share })),
    periods: z.array(
      period.extend({
        reasons: z.array(z.string()),
        clock_mhz: z.number().nullable(),
        /** 1 − clock / usual clock; null where no usual clock is known. */
        clock_drop: share.nullable(),
      }),
    ),
  }),
  clock: z.object({
    /** Median while busy (thresholds.busy_percent) and not throttled; else the GPU's highest. */
    usual_mhz: figureSchema,
    /** Of the busy time: under `thresholds.clock_drop` of the usual clock, whatever the reason. */
    dropped_share: figureSchema,
  }),
  power: z.object({
    limit_w: figureSchema,
    /** Of the time: at `thresholds.near_limit` of the limit or more. */
    near_limit_share: figureSchema,
    /** Of the time: the driver said that the power cap lowered the clocks. */
    capped_share: figureSchema,
    /** The source says whether it is the counter's difference or an integral of power. */
    energy_j: figureSchema,
  }),
  memory: z.object({
    total_bytes: figureSchema,
    first_bytes: figureSchema,
    peak_bytes: figureSchema,
    last_bytes: figureSchema,
    /** last − first */
    growth_bytes: figureSchema,
  }),
  processes: z.array(
    z.object({
      pid: count,
      name: z.string().nullable(),
      here: z.boolean().nullable(),
      peak_bytes: z.number(),
      last_bytes: z.number(),
    }),
  ),
});

export const monitorSchema = z.object({
  /** Null id: nothing was kept. */
  session: z.object({
    id: z.string().nullable(),
    title: z.string(),
    started_at: z.string(),
    status: z.string(),
  }),
  plan: monitorPlanSchema,
  duration_s: figureSchema,
  /** Of GPUs where there are any, else of the host. */
  sample_hz: figureSchema,
  thresholds: z.object({
    idle_percent: z.number(),
    idle_ms: z.number(),
    busy_percent: z.number(),
    clock_drop: share,
    near_limit: share,
  }),
  headlines: z.array(z.string()),
  devices: z.array(monitorDeviceSchema),
  host: z.object({
    metrics: z.array(monitorMetricSchema.extend({ scope: z.string() })),
  }),
  /** For charts: at most 600 points each, [ns since the session's start, mean of the span]. */
  series: z.array(
    z.object({
      scope: z.string(),
      metric: z.string(),
      unit: z.string(),
      points: z.array(z.tuple([z.number(), z.number()])),
    }),
  ),
});

export const monitorVersion = '1.0';
export const monitorDocumentSchema = documentSchema('monitor', monitorVersion, monitorSchema);

export type MonitorPlan = z.infer<typeof monitorPlanSchema>;
export type MonitorMetric = z.infer<typeof monitorMetricSchema>;
export type MonitorDevice = z.infer<typeof monitorDeviceSchema>;
export type MonitorResult = z.infer<typeof monitorSchema>;
