import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema, missingFigureSchema } from '../figure.js';
import { type FigureRow, valuesOf } from '../figure-rows.js';
import { sessionIdentitySchema } from './session-identity.js';

/** A distribution over requests (or tokens). Percentiles are linear (type 7), sd is over n − 1. */
const spreadSchema = z.object({
  unit: z.string(),
  n: z.number().int(),
  mean: z.number(),
  sd: z.number().nullable(),
  ci95: z
    .tuple([z.number(), z.number()])
    .nullable()
    .describe('95 % interval of the mean, from the means of ten consecutive batches; null below 20 values.'),
  min: z.number(),
  p50: z.number(),
  p90: z.number(),
  p95: z.number(),
  p99: z.number(),
  max: z.number(),
  source: z.string(),
});
const distributionSchema = z.union([spreadSchema, missingFigureSchema]);

export const loadKinds = ['closed', 'constant', 'poisson', 'ramp', 'trace'] as const;

const loadSchema = z.object({
  kind: z.enum(loadKinds),
  concurrency: z
    .number()
    .int()
    .nullable()
    .describe('Users of a closed loop; maximum in-flight requests of an open loop, null for no limit.'),
  rate_per_s: z.number().nullable().describe('Mean offered rate of an open loop; null for a closed one.'),
  from_per_s: z.number().optional().describe('Rate at the start of a ramp (1.2).'),
  to_per_s: z.number().optional().describe('Rate at the end of a ramp (1.2).'),
  requests: z.number().int(),
  warmup_requests: z.number().int(),
  ramp_s: z.number().describe('The start of users of a closed loop is spread over this time.'),
  seconds: z.number().nullable().describe('No request is started after it; null for no limit.'),
});

/** Utilization of an event loop above which arrivals queue in it: the client limits throughput. */
export const maxEventLoopUtilization = 0.9;

/** Figures of the client (src/load/client-verdict.ts). */
const clientSchema = z.object({
  threads: z.number().int(),
  send_lag_p50_ms: z.number().nullable(),
  send_lag_p99_ms: z.number().nullable(),
  event_loop_delay_p99_ms: z.number(),
  event_loop_delay_max_ms: z.number(),
  event_loop_utilization: z.number(),
  process_cores: z.number(),
  bound: z.boolean(),
  reasons: z.array(z.string()),
});

/** Limits that a good request must meet, ms. */
const sloSchema = z.object({
  ttft_ms: z.number().nullable(),
  tpot_ms: z.number().nullable(),
  e2e_ms: z.number().nullable(),
  share: z.number().describe('Share of the requests that must meet them for a load to meet the SLO.'),
});

const probeSchema = z.object({
  ttft_ms: z.number().nullable(),
  repeated_ttft_ms: z.number().nullable().describe('The same prompt sent again.'),
  repeated_cached_tokens: z
    .number()
    .nullable()
    .describe('Prompt tokens of the repeat that usage says came from a cache.'),
  caches_prefixes: z.boolean().nullable(),
  usage: z.boolean(),
});

/** Facts known only during the run; saved in the session as artifact `load-plan`. */
export const loadPlanSchema = z.object({
  target: z.object({
    url: z.string(),
    api: z.enum(['completions', 'chat']),
    model: z.string(),
    server: z.string().nullable().describe('Recognized by its /metrics page; null where it is not.'),
    metrics_url: z.string().nullable(),
  }),
  prompts: z.object({
    seed: z.number().int(),
    seed_used_before: z.boolean(),
    input_len: z.number().int().nullable(),
    output_len: z.number().int().nullable(),
    tokenizer: z
      .string()
      .nullable()
      .describe('Tokenizer by which lengths are exact; null when prompts are made of words.'),
  }),
  slo: sloSchema.nullable(),
  probe: probeSchema.nullable(),
  points: z.array(
    z.object({
      execution_id: z.string(),
      load: loadSchema,
      begin_ns: z.number().describe('Session time, ns.'),
      end_ns: z.number(),
      client: clientSchema,
    }),
  ),
});

const servingPointSchema = z.object({
  execution_id: z.string(),
  load: loadSchema,
  seconds: z.number().describe('First counted request sent to the last one ended, s.'),
  requests: z.object({
    measured: z.number().int(),
    ok: z.number().int(),
    failed: z.number().int(),
    cancelled: z.number().int(),
    warmup: z.number().int(),
    failures: z.array(
      z.object({ kind: z.string(), count: z.number().int(), example: z.string().nullable() }),
    ),
  }),
  tokens: z.object({
    input: figureSchema,
    output: figureSchema,
    shorter_outputs: z.number().int().describe('Requests with a shorter (longer) output than requested.'),
    longer_outputs: z.number().int(),
    tokenizer_difference: figureSchema.describe(
      'By the local tokenizer where it disagrees with usage: mean of tokenizer − usage over the requests.',
    ),
    cached_share: figureSchema,
    chunks_not_tokens: z
      .number()
      .int()
      .describe('Requests in which a chunk held several tokens, or it is not known how many.'),
  }),
  latency: z.object({
    ttft: distributionSchema,
    ttft_from_schedule: distributionSchema,
    tpot: distributionSchema,
    itl: distributionSchema,
    e2e: distributionSchema,
    e2e_from_schedule: distributionSchema,
  }),
  throughput: z.object({
    offered_requests_per_s: figureSchema.describe('The rate at which an open loop was due to send requests.'),
    requests_per_s: figureSchema,
    output_tokens_per_s: figureSchema,
    total_tokens_per_s: figureSchema,
  }),
  goodput: z.object({ requests_per_s: figureSchema, share: figureSchema, meets_slo: z.boolean().nullable() }),
  server: z.object({
    requests_running_max: figureSchema,
    requests_waiting_max: figureSchema,
    kv_cache_usage_max: figureSchema,
    prefix_cache_hit_ratio: figureSchema,
    preemptions: figureSchema,
  }),
  client: clientSchema,
});

const servingResultSchema = z.object({
  session: sessionIdentitySchema.omit({ kind: true }),
  target: loadPlanSchema.shape.target,
  prompts: loadPlanSchema.shape.prompts,
  slo: sloSchema.nullable(),
  probe: probeSchema.nullable(),
  points: z.array(servingPointSchema),
  saturation: z
    .object({ execution_id: z.string().nullable(), text: z.string() })
    .describe('Load above which throughput does not grow.'),
  best_under_slo: z.object({ execution_id: z.string().nullable(), text: z.string() }).nullable(),
});

export const servingVersion = '1.2';
export const servingDocumentSchema = documentSchema('serving', servingVersion, servingResultSchema);

export type Spread = z.infer<typeof spreadSchema>;
export type Distribution = z.infer<typeof distributionSchema>;
export type Load = z.infer<typeof loadSchema>;
export type Slo = z.infer<typeof sloSchema>;
export type Probe = z.infer<typeof probeSchema>;
export type LoadPlan = z.infer<typeof loadPlanSchema>;
export type ServingPoint = z.infer<typeof servingPointSchema>;
export type ServingResult = z.infer<typeof servingResultSchema>;

export const servingFigures = ({ points }: ServingResult): FigureRow[] =>
  points.map(({ load: { kind, concurrency, rate_per_s: rate }, latency, throughput, goodput }) => ({
    label: rate === null ? `concurrency ${concurrency}` : `${kind} ${rate}/s`,
    values: valuesOf({
      ttft_ms: latency.ttft,
      tpot_ms: latency.tpot,
      e2e_ms: latency.e2e,
      requests_per_s: throughput.requests_per_s,
      output_tokens_per_s: throughput.output_tokens_per_s,
      goodput_requests_per_s: goodput.requests_per_s,
    }),
  }));
