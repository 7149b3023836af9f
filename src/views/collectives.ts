import type { Document } from '../model/document.js';
import type {
  CollectiveGroup,
  CollectivesResult,
  CommunicatorCalls,
  JobRank,
  JobTransfer,
  RankShare,
} from '../model/documents/collectives.js';
import type { PhaseKind } from '../model/documents/trace.js';
import { rankRanges } from '../model/ranks.js';
import { instanceWord, phaseLabel } from '../vocabulary/stages.js';
import type { Block, Text } from './block.js';
import { rankStrip } from './rank-strip.js';
import { type ColumnOf, tableOf } from './table-of.js';

/** Labels of NCCL Inspector's timing sources. */
const clockLabels: Readonly<Record<string, string>> = {
  kernel_gpu: 'kernels, GPU clock',
  kernel_cpu: 'kernels, host clock',
  collective_cpu: 'call to end, host clock',
};

/** Maximum rows in a summary. */
const briefGroups = 8;

/** Collectives by operation and size, and the communicators that they ran on. */
export function collectiveBlocks({ data, issues }: Document<CollectivesResult>): Block[] {
  const several = new Set(data.communicators.map(({ communicator }) => communicator)).size > 1;
  const isOneExecution = new Set(data.groups.map(({ execution }) => execution)).size < 2;
  const executionColumn = isOneExecution ? [] : [ofExecution];
  return [
    ...jobBlocks(data.job),
    tableOf(
      'Times on the ranks, including waits for other ranks',
      [...executionColumn, ...groupColumns(several)],
      data.groups,
      { brief: briefGroups, filter: true },
    ),
    {
      type: 'notes',
      level: 2,
      items: [
        'recorded: share of the calls between the first and the last recorded one; NCCL Inspector omits small messages and operations that finished between two dumps.',
        'exchange: time of the rank that arrived last. waiting: longest minus shortest time. Both over operations recorded by all ranks.',
        'bus bandwidth: as nccl-tests defines it (doc/PERFORMANCE.md), comparable with the rate of a link; at the median time, including waiting.',
      ],
    },
    {
      ...tableOf('Communicators', [...executionColumn, ...communicatorColumns], data.communicators, {
        brief: briefGroups,
        filter: true,
      }),
      level: 2,
    },
    { type: 'issues', issues },
  ];
}

const number = { numeric: true } as const;

const ofExecution: ColumnOf<{ execution: string | null }> = {
  id: 'execution',
  head: 'execution',
  cell: ({ execution }) => execution ?? { missing: 'not recorded' },
};

const ofKind: ColumnOf<JobRank> = {
  id: 'step_kind',
  head: 'step',
  cell: ({ step_kind: kind }) =>
    kind === null ? { missing: 'the session has no steps' } : phaseLabel(kind as PhaseKind),
};

/** A summary of a large job shows the ranks that the others wait for. */
const lateFirst = (ranks: readonly JobRank[]): JobRank[] =>
  ranks.toSorted((a, b) => Number(b.late_cause !== null) - Number(a.late_cause !== null));

/** The ranks of a job, and missing ranks. */
function jobBlocks(job: CollectivesResult['job']): Block[] {
  if (!job) return [];
  const hasOneKind = job.ranks.every(({ step_kind: kind }) => kind === job.step_kind);
  const instance = job.step_kind === null || !hasOneKind ? 'a step' : instanceWord(job.step_kind);
  const per = job.step_kind === null ? 'over the capture' : `in ${instance}`;
  const inExecution = job.execution === null ? '' : `, execution ${job.execution}`;
  return [
    tableOf(
      `Ranks, ${per}${inExecution}`,
      hasOneKind ? rankColumns : [...rankColumns.slice(0, 1), ofKind, ...rankColumns.slice(1)],
      lateFirst(job.ranks),
      { brief: briefGroups, filter: true },
    ),
    ...(job.step_times === null ? [] : [rankStrip(job.step_times)]),
    ...(job.transfers.length === 0
      ? []
      : [
          tableOf(
            `Transfers from rank to rank, over the capture${inExecution}`,
            transferColumns,
            job.transfers,
            {
              brief: briefGroups,
              filter: true,
            },
          ),
        ]),
    {
      type: 'notes',
      level: 2,
      items: [
        `Times are ${job.step_kind === null ? per : `means over instances of ${instance}`}. Last to arrive: the others waited longer than the error of the clocks.`,
        'Exchange + waiting: time in operations that all imported ranks recorded; exchange is the shortest time over the ranks. Stage waits: waiting in sends and receives, for another stage of a pipeline.',
        ...(job.missing.length === 0
          ? []
          : [`Without ranks ${rankRanges(job.missing)}: waiting for them shows as exchange.`]),
      ],
    },
  ];
}

const transferColumns: readonly ColumnOf<JobTransfer>[] = [
  { id: 'sender', head: 'from rank', ...number, cell: ({ sender }) => ({ count: sender }) },
  { id: 'receiver', head: 'to rank', ...number, cell: ({ receiver }) => ({ count: receiver }) },
  { id: 'kv_cache', head: 'what', drop: 4, cell: ({ kv_cache: kv }) => (kv ? 'KV cache' : '') },
  { id: 'transfers', head: 'transfers', ...number, drop: 3, cell: ({ transfers }) => ({ count: transfers }) },
  { id: 'bytes', head: 'bytes', ...number, cell: ({ bytes }) => ({ n: bytes, unit: 'B' }) },
  { id: 'wire_ms', head: 'exchange', ...number, cell: (pair) => ms(pair.wire_ms) },
  { id: 'bandwidth', head: 'bandwidth', ...number, cell: ({ bandwidth }) => ({ figure: bandwidth }) },
  {
    id: 'of_link',
    head: 'of the link',
    ...number,
    drop: 2,
    cell: ({ link_share }) => ({ figure: link_share }),
  },
  { id: 'receiver_waits_ms', head: 'receiver waits', ...number, cell: (pair) => ms(pair.receiver_waits_ms) },
  {
    id: 'sender_waits_ms',
    head: 'sender waits',
    ...number,
    drop: 1,
    cell: (pair) => ms(pair.sender_waits_ms),
  },
];

const ms = (value: number | null): Text =>
  value === null
    ? { missing: 'no operation recorded on all ranks runs within this time' }
    : { n: value, unit: 'ms' };

const lateWords = { compute: 'it computes longer', host: 'its host is late' } as const;

const notAligned = (clock: JobRank['clock']): Text => ({
  missing: clock === null ? 'the ranks share the clock of the host' : 'not aligned',
});

const rankColumns: readonly ColumnOf<JobRank>[] = [
  { id: 'rank', head: 'rank', ...number, cell: ({ rank }) => ({ count: rank }) },
  {
    id: 'step_ms',
    head: 'time',
    ...number,
    cell: ({ step_ms: value }) => (value === null ? { missing: 'the session has no steps' } : ms(value)),
  },
  { id: 'compute_ms', head: 'compute', ...number, cell: (row) => ms(row.compute_ms) },
  { id: 'host_ms', head: 'host', ...number, drop: 3, cell: (row) => ms(row.host_ms) },
  { id: 'exposed_ms', head: 'exposed comm.', ...number, cell: (row) => ms(row.exposed_ms) },
  { id: 'overlapped_ms', head: 'overlapped', ...number, drop: 2, cell: (row) => ms(row.overlapped_ms) },
  { id: 'wire_ms', head: 'exchange', ...number, drop: 5, cell: (row) => ms(row.wire_ms) },
  { id: 'skew_ms', head: 'waiting', ...number, cell: (row) => ms(row.skew_ms) },
  {
    id: 'stages_ms',
    head: 'stage waits',
    ...number,
    drop: 4,
    cell: ({ stages_ms: value }) => (value === null ? '' : ms(value)),
  },
  {
    id: 'last',
    head: 'last to arrive',
    drop: 6,
    cell: ({ delayed_operations, operations, late_cause }) =>
      `${delayed_operations} of ${operations}${late_cause === null ? '' : `: ${lateWords[late_cause]}`}`,
  },
  {
    id: 'clock_offset',
    head: 'clock offset',
    ...number,
    drop: 1,
    cell: ({ clock }) =>
      clock && clock.offset_ns !== null ? { n: clock.offset_ns, unit: 'ns' } : notAligned(clock),
  },
  {
    id: 'clock_bound',
    head: '±',
    ...number,
    drop: 1,
    cell: ({ clock }) =>
      clock && clock.bound_ns !== null ? { n: clock.bound_ns, unit: 'ns' } : notAligned(clock),
  },
];

const unknownSize: Text = { missing: 'the capture does not record the sizes of these calls' };

const groupColumns = (several: boolean): ColumnOf<CollectiveGroup>[] => [
  { id: 'operation', head: 'operation', cell: ({ operation }) => operation },
  {
    id: 'bytes',
    head: 'size',
    ...number,
    cell: ({ bytes }) => (bytes === null ? unknownSize : { n: bytes, unit: 'B' }),
  },
  {
    id: 'ranks',
    head: 'ranks',
    ...number,
    drop: 6,
    cell: ({ ranks, nodes }) =>
      nodes !== null && nodes > 1 ? [{ count: ranks }, ' on ', { count: nodes }, ' hosts'] : { count: ranks },
  },
  ...(several
    ? [
        {
          id: 'communicators',
          head: 'communicators',
          ...number,
          drop: 1,
          cell: ({ communicators }: CollectiveGroup) => ({ count: communicators }),
        },
      ]
    : []),
  { id: 'count', head: 'rows', ...number, drop: 7, cell: ({ recorded }) => ({ count: recorded }) },
  {
    id: 'recorded_share',
    head: 'recorded',
    ...number,
    drop: 7,
    cell: ({ recorded_share: figure }) => ({ figure }),
  },
  {
    id: 'timed_by',
    head: 'timed by',
    drop: 0,
    cell: ({ timed_by }) => timed_by.map((by) => clockLabels[by] ?? by).join(', '),
  },
  { id: 'time_p50_ns', head: 'p50', ...number, cell: ({ time_p50_ns: figure }) => ({ figure }) },
  { id: 'time_p99_ns', head: 'p99', ...number, drop: 8, cell: ({ time_p99_ns: figure }) => ({ figure }) },
  {
    id: 'algorithm_bytes_per_s',
    head: 'algorithm',
    ...number,
    drop: 2,
    cell: ({ algorithm_bandwidth: figure }) => ({ figure }),
  },
  { id: 'bus_bytes_per_s', head: 'bus', ...number, cell: ({ bus_bandwidth: figure }) => ({ figure }) },
  {
    id: 'transfer_ns',
    head: 'exchange',
    ...number,
    drop: 4,
    cell: ({ transfer_p50_ns: figure }) => ({ figure }),
  },
  {
    id: 'waiting_ns',
    head: 'waiting',
    ...number,
    drop: 5,
    cell: ({ waiting_p50_ns: figure }) => ({ figure }),
  },
  {
    id: 'of_roof',
    head: 'of roof',
    ...number,
    drop: 3,
    cell: ({ roof_share: figure }) => ({ figure, utilization: true }),
  },
  {
    id: 'of_link',
    head: 'of link',
    ...number,
    drop: 3,
    cell: ({ link_share: figure }) => ({ figure, utilization: true }),
  },
  {
    id: 'last_rank',
    head: 'last to arrive',
    cell: ({ last }) => rankText(last, several),
  },
  { id: 'longest_rank', head: 'longest time', drop: 0, cell: ({ longest }) => rankText(longest, several) },
];

/** "rank 3 (45 of 50)" */
function rankText(share: RankShare | null, several: boolean): Text {
  if (share === null) return { missing: 'no call of the operation has different times on all ranks' };
  const where = several ? ` of ${share.communicator}` : '';
  return {
    text: `rank ${share.rank}${where} (${share.operations} of ${share.total_operations})`,
    ...(share.host === null ? {} : { hint: share.host }),
  };
}

const communicatorColumns: readonly ColumnOf<CommunicatorCalls>[] = [
  { id: 'communicator', head: 'communicator', cell: ({ communicator }) => communicator },
  {
    id: 'name',
    head: 'name',
    cell: ({ name }) => name ?? { missing: 'the capture does not record it (NCCL before 2.30)' },
  },
  { id: 'operation', head: 'operation', cell: ({ operation }) => operation },
  { id: 'ranks', head: 'ranks', ...number, cell: ({ ranks }) => ({ count: ranks }) },
  {
    id: 'nodes',
    head: 'hosts',
    ...number,
    drop: 0,
    cell: ({ nodes }) => (nodes === null ? { missing: 'not recorded' } : { count: nodes }),
  },
  {
    id: 'recorded_ranks',
    head: 'ranks recorded',
    ...number,
    cell: (group) => ({ count: group.recorded_ranks }),
  },
  { id: 'rows', head: 'rows', ...number, cell: ({ recorded }) => ({ count: recorded }) },
  { id: 'recorded_share', head: 'recorded', ...number, cell: ({ recorded_share: figure }) => ({ figure }) },
];
