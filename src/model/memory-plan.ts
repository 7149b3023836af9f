import { z } from 'zod';
import { memoryProfileSchema } from './documents/memory-profile.js';

const given = z.number().nullable();

/**
 * Facts known only during a run of `inferscope memory` (artifact memory-plan.json): the request, when each stage started, and the processes
 * of the engine. All t_ns are ns since the session's start, when sampling started.
 */
export const memoryPlanSchema = z.object({
  v: z.literal(1),
  execution_id: z.string(),
  config: memoryProfileSchema.shape.metadata.shape.config,
  where: z.enum(['host', 'container', 'url']),
  container_name: z.string().nullable(),
  engine: z.string(),
  given: z
    .object({
      num_parameters: given,
      num_layers: given,
      num_heads: given,
      num_kv_heads: given,
      head_dim: given,
      hidden_size: given,
    })
    .describe('Dimensions given on the command line; they override config.json.'),
  config_source: z.enum(['preset', 'config', 'none']).describe('Where config.json is from.'),
  model_config: z
    .record(z.string(), z.unknown())
    .nullable()
    .default(null)
    .describe(
      'Config of a preset or a local file, for engines that report no dimensions: a server only names its model.',
    ),
  seed: z.number().int(),
  runs: z.number().int(),
  snapshot: z.boolean(),
  timeout_s: z.number().nullable(),
  timed_out: z.boolean(),
  launch_ns: z.number().describe("Start of the engine's process."),
  ended_ns: z.number().describe('Its end.'),
  sampled_until_ns: z.number(),
  phases: z.array(z.object({ phase: z.string(), t_ns: z.number() })),
  sampler: z
    .object({ source: z.string().nullable(), hz: z.number(), why: z.string().nullable() })
    .describe('Null: no GPU could be sampled, and why.'),
  gpus: z.array(
    z.object({ gpu: z.number().int(), name: z.string().nullable(), total_bytes: z.number().nullable() }),
  ),
  reachable_gpus: z
    .array(z.number().int())
    .nullable()
    .describe('GPUs of this machine that the engine can reach; null: all or not known.'),
  samples_here: z.boolean(),
  own_pids: z.array(z.number().int()).describe('Processes of the engine, as this machine numbers them.'),
  others_before: z
    .array(
      z.object({
        gpu: z.number().int(),
        pid: z.number().int(),
        name: z.string().nullable(),
        used_bytes: z.number().nullable(),
      }),
    )
    .describe('Processes on the GPUs before the engine started.'),
  pid_namespace: z
    .enum(['initial', 'nested', 'unknown'])
    .describe("Whether process ids here are the machine's own, or a container's."),
  failure: z.object({ code: z.string(), what: z.string(), why: z.string(), fix: z.string() }).nullable(),
});

export type MemoryPlan = z.infer<typeof memoryPlanSchema>;
export type GivenDimensions = MemoryPlan['given'];
