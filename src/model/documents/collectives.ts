import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** How often one rank was it, among the operations that all ranks recorded. */
const rankShareSchema = z.object({
  communicator: z.string(),
  rank: z.number().int(),
  host: z.string().nullable(),
  operations: z.number().int(),
  of: z.number().int(),
});

const groupSchema = z.object({
  operation: z.string(),
  bytes: z
    .number()
    .int()
    .describe('As the call has it: of AllGather and ReduceScatter the part of one rank.'),
  ranks: z.number().int().describe('Ranks of the communicator.'),
  nodes: z.number().int().nullable(),
  communicators: z.number().int(),
  recorded: z.number().int().describe('Rows: operations times the ranks that recorded them.'),
  recorded_share: figureSchema.describe(
    'Of the calls of this operation on these communicators, of any size, between the first and the last recorded.',
  ),
  timed_by: z.array(z.string()),
  time_p50_ns: figureSchema,
  time_p99_ns: figureSchema,
  algorithm_bandwidth: figureSchema.describe('At the median time.'),
  bus_bandwidth: figureSchema,
  complete: z
    .number()
    .int()
    .describe(
      "Operations that all ranks recorded by the GPU's clock; only of those that every rank waits for.",
    ),
  transfer_p50_ns: figureSchema.describe(
    'The shortest of the ranks, which arrived last: median over complete operations.',
  ),
  waiting_p50_ns: figureSchema.describe(
    'The longest less the shortest of the ranks: median over complete operations.',
  ),
  transfer_bus_bandwidth: figureSchema.describe('Bus bandwidth of the shortest rank.'),
  of_roof: figureSchema.describe(
    'Of the largest bus bandwidth that a ring of as many GPUs of this machine reached (inferscope roofline).',
  ),
  longest: rankShareSchema.nullable().describe('The rank that most often had the longest time: it waited.'),
  last: rankShareSchema
    .nullable()
    .describe('The rank that most often had the shortest time: the others waited for it.'),
});

const communicatorSchema = z.object({
  communicator: z.string(),
  name: z.string().nullable(),
  operation: z.string(),
  ranks: z.number().int(),
  nodes: z.number().int().nullable(),
  recorded_ranks: z.number().int(),
  recorded: z.number().int(),
  recorded_share: figureSchema,
});

const collectivesResultSchema = z.object({
  recorded: z.number().int(),
  groups: z
    .array(groupSchema)
    .describe('By operation, size and number of ranks, the largest sum of times first.'),
  communicators: z
    .array(communicatorSchema)
    .describe('Each communicator by operation; Send and Recv are counted together.'),
});

export const collectivesVersion = '1.0';
export const collectivesDocumentSchema = documentSchema(
  'collectives',
  collectivesVersion,
  collectivesResultSchema,
);

export type CollectiveGroup = z.infer<typeof groupSchema>;
export type RankShare = z.infer<typeof rankShareSchema>;
export type CommunicatorCalls = z.infer<typeof communicatorSchema>;
export type CollectivesResult = z.infer<typeof collectivesResultSchema>;
