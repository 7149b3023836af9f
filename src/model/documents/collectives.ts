import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { rankClockSchema } from '../ranks.js';

/** How often a rank was the first or last one, among the operations that all ranks recorded. */
const rankShareSchema = z.object({
  communicator: z.string(),
  rank: z.number().int(),
  host: z.string().nullable(),
  operations: z.number().int(),
  total_operations: z.number().int(),
});

const execution = () => z.string().nullable().describe('The execution with these calls.');

const groupSchema = z.object({
  execution: execution(),
  operation: z.string(),
  bytes: z
    .number()
    .int()
    .nullable()
    .describe(
      'As in the call: for AllGather and ReduceScatter the part of one rank; null for kernels known only by name.',
    ),
  ranks: z.number().int().describe('Ranks of the communicator.'),
  nodes: z.number().int().nullable(),
  communicators: z.number().int(),
  recorded: z.number().int().describe('Rows: operations times the ranks that recorded them.'),
  recorded_share: figureSchema.describe(
    'Share of the calls of this operation on these communicators, of any size, from the first recorded one to the last.',
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
      "Operations that all ranks recorded by the GPU's clock; 0 for kinds of operations in which a rank need not wait for the last one.",
    ),
  transfer_p50_ns: figureSchema.describe(
    'Time of the rank that arrived last, the shortest of all: median over complete operations.',
  ),
  waiting_p50_ns: figureSchema.describe(
    'Longest minus shortest time of the ranks: median over complete operations.',
  ),
  transfer_bus_bandwidth: figureSchema.describe('Bus bandwidth of the shortest rank.'),
  roof_share: figureSchema.describe(
    'Share of the largest bus bandwidth that a ring of as many GPUs reached on this machine (inferscope roofline).',
  ),
  sums: z
    .object({
      time_ns: z.number().int().describe('Sum of the times of all ranks: exactly wire_ns + skew_ns.'),
      wire_ns: z.number().int().describe('Shortest time over ranks, times the ranks.'),
      skew_ns: z.number().int().describe('Waiting for the last rank.'),
    })
    .nullable()
    .describe('Over complete operations; null without one.'),
  link_share: figureSchema.describe(
    'Bus bandwidth of the shortest rank over the rate of the link between GPUs by the data sheet: NVLink, else PCIe; over several hosts, of all network adapters of one host.',
  ),
  longest: rankShareSchema.nullable().describe('The rank that most often had the longest time: it waited.'),
  last: rankShareSchema
    .nullable()
    .describe('The rank that most often had the shortest time: the others waited for it.'),
});

const communicatorSchema = z.object({
  execution: execution(),
  communicator: z.string(),
  name: z.string().nullable(),
  operation: z.string(),
  ranks: z.number().int(),
  nodes: z.number().int().nullable(),
  recorded_ranks: z.number().int(),
  recorded: z.number().int(),
  recorded_share: figureSchema,
});

const count = () => z.number().int();
const ms = () => z.number().nullable();

/** One rank of a job (import --ranks): mean times per step in ms, over the whole capture without steps. */
const jobRankSchema = z.object({
  rank: count(),
  step_kind: z
    .string()
    .nullable()
    .describe(
      "The job's `step_kind`, or for a rank without such steps its own longest kind; null without steps.",
    ),
  steps: count().describe('Steps of `step_kind` in the means.'),
  step_ms: ms().describe('First to last device activity of a mean step.'),
  compute_ms: ms().describe('Kernels that do not communicate.'),
  host_ms: ms().describe('Idle time of the device before and inside launch calls.'),
  exposed_ms: ms().describe('Communication kernels while nothing computes.'),
  overlapped_ms: ms().describe('Communication kernels while something computes.'),
  wire_ms: ms().describe('In complete operations: the shortest time over ranks.'),
  skew_ms: ms().describe('In complete operations: waiting for the last rank.'),
  stages_ms: ms().describe(
    'Part of skew_ms in sends and receives: waiting for another pipeline stage or the other end of a transfer.',
  ),
  delayed_operations: count().describe(
    'Complete operations that the others waited in for it, longer than the error of the clocks.',
  ),
  operations: count().describe('Complete operations that it took part in.'),
  late_cause: z
    .enum(['compute', 'host'])
    .nullable()
    .describe(
      'Why the others waited for it, if it was last in a tenth of the operations or more: it computed longer than the median rank, or its device waited for its host.',
    ),
  clock: rankClockSchema.nullable(),
});

/** Own times of all ranks; for long captures and large jobs neighboring steps are averaged. */
const ownTimesSchema = z.object({
  steps: z
    .array(z.object({ first: count(), last: count() }))
    .describe("Numbered from 1 in each rank's order."),
  ranks: z.array(z.object({ rank: count(), ms: z.array(ms()).describe('As many as `steps`.') })),
});

/** Transfers from one rank to another; both ends are known from PyTorch traces and from NCCL's payloads in nsys reports. */
const jobTransferSchema = z.object({
  sender: count(),
  receiver: count(),
  transfers: count(),
  bytes: count().describe('All transfers together.'),
  wire_ms: z
    .number()
    .describe('Time in which both ends transfer: sum of the shorter of the two times of each transfer.'),
  sender_waits_ms: z.number(),
  receiver_waits_ms: z.number(),
  bandwidth: figureSchema,
  link_share: figureSchema,
  kv_cache: z
    .boolean()
    .describe('The sender computes prefills alone and the receiver decodes: disaggregated serving.'),
});

const jobSchema = z.object({
  world_size: count().nullable(),
  missing: z.array(count()).describe('Ranks of the job without an imported file.'),
  execution: z
    .string()
    .nullable()
    .describe('The execution that ranks, transfers and steps are of, where the session has several.'),
  step_kind: z
    .string()
    .nullable()
    .describe('The kind of step with the longest sum of times; null without steps.'),
  ranks: z.array(jobRankSchema),
  transfers: z
    .array(jobTransferSchema)
    .describe('Sends from rank to rank over the whole capture, the longest sum of times first.'),
  step_times: ownTimesSchema
    .nullable()
    .describe('Steps of `step_kind` without exposed communication, by rank; null without steps.'),
});

const collectivesResultSchema = z.object({
  job: jobSchema.nullable().describe('The ranks of import --ranks; null for logs of NCCL.'),
  recorded: z.number().int(),
  groups: z
    .array(groupSchema)
    .describe('By execution, operation, size and number of ranks, the largest sum of times first.'),
  communicators: z
    .array(communicatorSchema)
    .describe('Each communicator by operation; Send and Recv are counted together.'),
});

export const collectivesVersion = '1.6';
export const collectivesDocumentSchema = documentSchema(
  'collectives',
  collectivesVersion,
  collectivesResultSchema,
);

export type CollectiveGroup = z.infer<typeof groupSchema>;
export type JobTransfer = z.infer<typeof jobTransferSchema>;
export type JobRank = z.infer<typeof jobRankSchema>;
export type RankShare = z.infer<typeof rankShareSchema>;
export type CommunicatorCalls = z.infer<typeof communicatorSchema>;
export type CollectivesResult = z.infer<typeof collectivesResultSchema>;
