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
  /** As the call has it: of AllGather and ReduceScatter the part of one rank. */
  bytes: z.number().int(),
  /** Ranks of the communicator. */
  ranks: z.number().int(),
  nodes: z.number().int().nullable(),
  communicators: z.number().int(),
  /** Rows: operations times the ranks that recorded them. */
  recorded: z.number().int(),
  /** Of the calls of this operation on these communicators, of any size, between the first and the last recorded. */
  recorded_share: figureSchema,
  timed_by: z.array(z.string()),
  time_p50_ns: figureSchema,
  time_p99_ns: figureSchema,
  /** At the median time. */
  algorithm_bandwidth: figureSchema,
  bus_bandwidth: figureSchema,
  /** Operations that all ranks recorded by the GPU's clock; only of those that every rank waits for. */
  complete: z.number().int(),
  /** The shortest of the ranks, which arrived last: median over complete operations. */
  transfer_p50_ns: figureSchema,
  /** The longest less the shortest of the ranks: median over complete operations. */
  waiting_p50_ns: figureSchema,
  /** Bus bandwidth of the shortest rank. */
  transfer_bus_bandwidth: figureSchema,
  /** Of the largest bus bandwidth that a ring of as many GPUs of this machine reached (inferscope roofline). */
  of_roof: figureSchema,
  /** The rank that most often had the longest time: it waited. */
  longest: rankShareSchema.nullable(),
  /** The rank that most often had the shortest time: the others waited for it. */
  last: rankShareSchema.nullable(),
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

export const collectivesResultSchema = z.object({
  recorded: z.number().int(),
  /** By operation, size and number of ranks, the largest sum of times first. */
  groups: z.array(groupSchema),
  /** Each communicator by operation; Send and Recv are counted together. */
  communicators: z.array(communicatorSchema),
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
