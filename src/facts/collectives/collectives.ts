import { busFactor, collectiveTraffic } from '../../model/collectives.js';
import { document, type Document, type Issue } from '../../model/document.js';
import {
  type CollectiveGroup,
  type CollectivesResult,
  collectivesVersion,
  type CommunicatorCalls,
  type RankShare,
} from '../../model/documents/collectives.js';
import type { Collectives } from '../../model/documents/gpu-roofline.js';
import { type Figure, figure, missing } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import { gpuHostLink, gpuPeerLink } from '../../hardware/gpu-peaks.js';
import { hostNetworkLink } from '../../hardware/network-adapters.js';
import { formatBytes } from '../../vocabulary/format.js';
import { makeCollectives } from '../trace/collective-tables.js';
import { deviceOf } from '../device.js';
import { readStoredGpuRoofline } from '../roofs.js';
import { readJob } from './job-ranks.js';
import { communicatorsSql, completeSql, groupsSql, rankSharesSql, repeatedSql } from './queries.js';

interface Group {
  execution_id: string | null;
  operation: string;
  bytes: number | null;
  ranks: number;
  nodes: number | null;
}

interface GroupRow extends Group {
  sequence_of: string;
  recorded: number;
  communicators: number;
  named: string[];
  timed_by: (string | null)[];
  timed: number;
  p50: number | null;
  p99: number | null;
  min_bus_bytes: number | null;
  max_bus_bytes: number | null;
}

interface CompleteRow extends Group {
  complete: number;
  transfer: number;
  waiting: number;
  time_ns: number;
  wire_ns: number;
}

type CallsRow = Omit<CommunicatorCalls, 'recorded_share' | 'execution'> & {
  execution_id: string | null;
  calls: number;
};

/**
 * Collectives recorded by NCCL, by operation, size and ranks: times, bandwidths as nccl-tests defines them, the
 * recorded share of calls, and the rank that the others wait for.
 */
export async function analyzeCollectives(session: Session): Promise<Document<CollectivesResult>> {
  const database = await session.connect();
  try {
    await makeCollectives(database);
    const rows = await database.query<GroupRow>(groupsSql);
    const complete = await database.query<CompleteRow>(completeSql);
    const last = await database.query<Group & RankShare>(rankSharesSql('last'));
    const longest = await database.query<Group & RankShare>(rankSharesSql('longest'));
    const calls = await database.query<CallsRow>(communicatorsSql);
    const [repeatedRow] = await database.query<{ repeated: number }>(repeatedSql);
    const roof = (await readStoredGpuRoofline(session))?.collectives ?? null;
    const links = linksOf(session);
    const data = {
      job: await readJob(session, database, links.gpus),
      recorded: rows.reduce((sum, { recorded }) => sum + recorded, 0),
      groups: rows.map((row) =>
        groupOf(
          row,
          {
            complete: sameGroup(complete, row),
            last: sameGroup(last, row),
            longest: sameGroup(longest, row),
          },
          calls,
          { roof, links },
        ),
      ),
      communicators: calls.map(({ execution_id: execution, calls: callCount, ...row }) => ({
        execution,
        ...row,
        recorded_share: recordedShare(row.recorded, callCount),
      })),
    };
    return document('collectives', collectivesVersion, data, [
      ...session.issues,
      ...issuesOf(rows, repeatedRow?.repeated ?? 0),
      ...overLinkIssues(data.groups),
    ]);
  } finally {
    await database.close();
  }
}

const sameGroup = <T extends Group>(
  rows: readonly T[],
  { execution_id, operation, bytes, ranks, nodes }: Group,
): T | undefined =>
  rows.find(
    (row) =>
      row.execution_id === execution_id &&
      row.operation === operation &&
      row.bytes === bytes &&
      row.ranks === ranks &&
      row.nodes === nodes,
  );

function groupOf(
  row: GroupRow,
  {
    complete,
    last,
    longest,
  }: {
    complete: CompleteRow | undefined;
    last: RankShare | undefined;
    longest: RankShare | undefined;
  },
  calls: readonly CallsRow[],
  { roof, links }: { roof: Collectives | null; links: Links },
): CollectiveGroup {
  const { execution_id: execution, operation, bytes, ranks, nodes, recorded, communicators, timed } = row;
  const groupCalls = calls.filter(
    (call) =>
      call.execution_id === execution &&
      call.operation === row.sequence_of &&
      row.named.includes(call.communicator),
  );
  const callCount = groupCalls.reduce((sum, callsRow) => sum + callsRow.calls, 0);
  const time = (ns: number | null, share: string) =>
    ns === null ? untimed : figure(ns, 'ns', `${share} of the recorded times`, { n: timed });
  const over = (ns: number | undefined, what: string) =>
    ns === undefined ? incomplete : figure(ns, 'ns', what, { n: complete!.complete });
  const transfer = over(complete?.transfer, 'median of the shortest time over ranks');
  const p50 = time(row.p50, 'median');
  const transferBus = bandwidth(row, transfer, 'bus');
  return {
    execution,
    operation,
    bytes,
    ranks,
    nodes,
    communicators,
    recorded,
    recorded_share: recordedShare(
      groupCalls.reduce((sum, callsRow) => sum + callsRow.recorded, 0),
      callCount,
    ),
    timed_by: row.timed_by.filter((source) => source !== null),
    time_p50_ns: p50,
    time_p99_ns: time(row.p99, 'p99 (type 7)'),
    algorithm_bandwidth: bandwidth(row, p50, 'algorithm'),
    bus_bandwidth: bandwidth(row, p50, 'bus'),
    complete: complete?.complete ?? 0,
    transfer_p50_ns: transfer,
    waiting_p50_ns: over(complete?.waiting, 'median of the longest minus the shortest time over ranks'),
    transfer_bus_bandwidth: transferBus,
    roof_share: shareOfRoofline(row, transferBus, roof),
    sums: complete
      ? {
          time_ns: complete.time_ns,
          wire_ns: complete.wire_ns,
          skew_ns: complete.time_ns - complete.wire_ns,
        }
      : null,
    link_share: shareOfLink(transferBus, (nodes ?? 1) > 1 ? links.hosts : links.gpus),
    longest: shareOf(longest),
    last: shareOf(last),
  };
}

const untimed = missing('no_time', 'no operation has a time');
const unsized = missing('no_bytes', 'the capture does not record the sizes of these calls');
const incomplete = missing('not_all_ranks', 'the GPU clock timed no call on all ranks');

/** Bandwidth as nccl-tests defines it, over a time. */
function bandwidth({ operation, bytes, ranks }: Group, time: Figure, kind: 'algorithm' | 'bus'): Figure {
  if (time.value === null) return time;
  if (bytes === null) return unsized;
  const traffic = collectiveTraffic(operation, bytes, ranks);
  if (traffic === null) return missing('no_definition', 'nccl-tests defines no bandwidth for this operation');
  if (traffic[kind] === 0 || time.value === 0) return missing('no_traffic', 'no data moves between ranks');
  return figure(
    traffic[kind] / (time.value / 1e9),
    'B/s',
    `bytes by the nccl-tests definition of ${kind}, over: ${time.source}`,
  );
}

function shareOfRoofline({ ranks, nodes }: Group, bus: Figure, roof: Collectives | null): Figure {
  if (roof === null)
    return missing('no_roofline', 'the links were not measured (run inferscope roofline on these GPUs)');
  if (roof.ranks !== ranks || nodes === null || nodes > 1)
    return missing('other_ranks', `the roofline was measured on ${roof.ranks} GPUs of one host`);
  if (bus.value === null) return bus;
  if (roof.bus_bytes_per_s === null) return missing('no_roofline', 'the roofline has no bus bandwidth');
  return figure(bus.value / roof.bus_bytes_per_s, 'ratio', 'bus bandwidth over the largest of the roofline');
}

interface Links {
  /** NVLink or similar, else the link to the host. */
  gpus: Figure;
  hosts: Figure;
}

function linksOf({ manifest }: Session): Links {
  const { name } = deviceOf(manifest);
  const peer = name === null ? null : gpuPeerLink(name);
  const adapters = manifest.hardware['network_adapters'];
  return {
    gpus:
      peer === null
        ? missing('unknown_gpu', 'the captures do not name the GPU')
        : peer.value === null
          ? gpuHostLink(name!)
          : peer,
    hosts: hostNetworkLink(typeof adapters === 'string' ? adapters.split(' ') : []),
  };
}

function shareOfLink(bus: Figure, link: Figure): Figure {
  // An unknown link is the reason for all operations.
  if (link.value === null) return link;
  if (bus.value === null) return bus;
  return figure(bus.value / link.value, 'ratio', `bus bandwidth over ${link.source}`);
}

/**
 * Whether a bandwidth exceeds the link, so bytes, ranks or times are wrong. Switches that reduce (NVLS) halve the
 * traffic of an all-reduce, so its limit is 2(n − 1)/n of the link.
 */
const isOverLink = ({ operation, ranks, link_share: { value } }: CollectiveGroup): boolean =>
  value !== null && value > (operation === 'AllReduce' ? busFactor(ranks) : 1) * (1 + tolerance);

const recordedShare = (recorded: number, callCount: number): Figure =>
  callCount === 0
    ? missing('no_calls', 'no call was recorded')
    : figure(recorded / callCount, 'ratio', 'recorded over numbers between the first and last recorded');

const shareOf = (share: RankShare | undefined): RankShare | null =>
  share === undefined
    ? null
    : {
        communicator: share.communicator,
        rank: share.rank,
        host: share.host,
        operations: share.operations,
        total_operations: share.total_operations,
      };

/** Tolerance for the rounding in the source's figures. */
const tolerance = 0.001;

function overLinkIssues(groups: readonly CollectiveGroup[]): Issue[] {
  const over = groups.filter(isOverLink);
  if (over.length === 0) return [];
  const named = over.map(({ operation, bytes }) => `${operation} of ${formatBytes(bytes ?? 0)}`).join(', ');
  const text = `The bus bandwidth of ${named} is above the rate of their link: their sizes, ranks or times are wrong, and their bandwidths should not be used.`;
  return [{ code: 'collectives_over_link', severity: 'warning', text, count: over.length }];
}

function issuesOf(rows: readonly GroupRow[], repeated: number): Issue[] {
  const list: Issue[] = [];
  if (repeated > 0) {
    const text = 'Duplicate records count once: a log was imported twice.';
    list.push({ code: 'collectives_repeated', severity: 'warning', text, count: repeated });
  }
  const differ = rows.filter((row) => {
    const bus = row.bytes === null ? null : collectiveTraffic(row.operation, row.bytes, row.ranks)?.bus;
    if (!bus || row.min_bus_bytes === null || row.max_bus_bytes === null) return false;
    return row.min_bus_bytes < bus * (1 - tolerance) || row.max_bus_bytes > bus * (1 + tolerance);
  });
  if (differ.length > 0) {
    const text = `The bus bandwidth in the logs does not match nccl-tests' definition for ${[...new Set(differ.map(({ operation }) => operation))].join(', ')}; ours is computed from size, ranks and time.`;
    list.push({ code: 'collectives_bandwidth_differs', severity: 'warning', text, count: differ.length });
  }
  return list;
}
