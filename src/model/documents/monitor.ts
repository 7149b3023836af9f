import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { sessionIdentitySchema } from './session-identity.js';

const count = z.number().int();
const share = z.number();

/** Facts known only during the recording; saved as the artifact `monitor` of its session. */
export const monitorPlanSchema = z.object({
  source: z
    .enum(['live', 'files'])
    .describe('live: sampled by inferscope. files: recordings of other tools.'),
  tool: z.string().nullable().describe('What read the GPUs: NVML, amd-smi, rocm-smi; null without GPUs.'),
  driver: z.string().nullable(),
  files: z.array(z.string()),
  hz: z.number().nullable().describe('Requested sampling rate.'),
  sample_cost_us: z
    .object({
      gpus: z.object({ mean: z.number(), max: z.number() }).nullable(),
      host: z.object({ mean: z.number(), max: z.number() }).nullable(),
    })
    .describe('Time for one sample of all GPUs, and of the host, of the sampling process.'),
  gpus: z.array(z.object({ scope: z.string(), name: z.string().nullable() })),
  no_gpus: z.object({ code: z.string(), text: z.string() }).nullable().describe('Why there are none.'),
  program: z
    .object({
      command: z.array(z.string()),
      exit_code: count.nullable(),
      signal: z.string().nullable(),
      start_ns: z.number(),
      end_ns: z.number(),
    })
    .nullable()
    .describe('The command of --while; null when nothing was started.'),
  processes: z
    .array(z.object({ pid: count, name: z.string().nullable(), here: z.boolean().nullable() }))
    .describe(
      'Processes seen on GPUs. `here`: the pid is that of a process on this machine; null where that is not known.',
    ),
  pid_namespace: z
    .enum(['initial', 'nested', 'unknown'])
    .describe("nested: a container's, where the driver's process ids may be those of the host."),
});

/** A series over the recording. `mean` is weighted by time, percentiles are of samples (type 7). */
const monitorMetricSchema = z.object({
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

const monitorDeviceSchema = z.object({
  scope: z.string().describe('gpu0, gpu0.mig1'),
  name: z.string().nullable(),
  headline: z.string(),
  metrics: z.array(monitorMetricSchema),
  idle: z
    .object({
      share: figureSchema,
      count,
      longest_ms: z.number().nullable(),
      periods: z.array(period).describe('The longest ones, in the order of time.'),
    })
    .describe('Periods with utilization under `thresholds.idle_percent` for at least `thresholds.idle_ms`.'),
  throttling: z
    .object({
      share: figureSchema,
      count,
      reasons: z.array(z.object({ reason: z.string(), label: z.string(), share })),
      periods: z.array(
        period.extend({
          reasons: z.array(z.string()),
          clock_mhz: z.number().nullable(),
          clock_drop: share
            .nullable()
            .describe('1 − clock / usual clock; null where no usual clock is known.'),
        }),
      ),
    })
    .describe('Periods in which the clocks were throttled.'),
  clock: z.object({
    usual_mhz: figureSchema.describe(
      "Median while busy (thresholds.busy_percent) and not throttled; else the GPU's highest.",
    ),
    dropped_share: figureSchema.describe(
      'Share of the busy time with a clock under `thresholds.clock_drop` of the usual one, for any reason.',
    ),
  }),
  power: z.object({
    limit_w: figureSchema,
    near_limit_share: figureSchema.describe(
      'Share of the time at `thresholds.near_limit` of the limit or more.',
    ),
    capped_share: figureSchema.describe(
      'Share of the time in which the driver reported that the power cap lowered the clocks.',
    ),
    energy_j: figureSchema.describe(
      "The source says whether it is the counter's difference or an integral of power.",
    ),
  }),
  memory: z.object({
    total_bytes: figureSchema,
    first_bytes: figureSchema,
    peak_bytes: figureSchema,
    last_bytes: figureSchema,
    growth_bytes: figureSchema.describe('last − first'),
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

const monitorSchema = z.object({
  session: sessionIdentitySchema
    .omit({ kind: true })
    .extend({ id: z.string().nullable() })
    .describe('Null id: nothing was saved.'),
  plan: monitorPlanSchema,
  duration_s: figureSchema,
  sample_hz: figureSchema.describe('Sampling rate of the GPUs, or of the host if there are none.'),
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
  series: z
    .array(
      z.object({
        scope: z.string(),
        metric: z.string(),
        unit: z.string(),
        points: z.array(z.tuple([z.number(), z.number()])),
      }),
    )
    .describe("For charts: at most 600 points each, [ns since the session's start, mean of the span]."),
});

export const monitorVersion = '1.1';
export const monitorDocumentSchema = documentSchema('monitor', monitorVersion, monitorSchema);

export type MonitorPlan = z.infer<typeof monitorPlanSchema>;
export type MonitorMetric = z.infer<typeof monitorMetricSchema>;
export type MonitorDevice = z.infer<typeof monitorDeviceSchema>;
export type MonitorResult = z.infer<typeof monitorSchema>;
