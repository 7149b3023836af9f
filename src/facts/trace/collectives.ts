import { sendAndRecv } from '../../model/collectives.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { callKey, makeCollectives } from './collective-tables.js';
import { makeKernelStreams } from './kernel-streams.js';
import { literal } from './scope.js';

/**
 * Minimum share of a kernel's pairs that overlap in time. Below it, order does not show which kernels belong together.
 */
const minOverlapShare = 0.99;

/** Communication kernels of one name on one rank; times in ms, mean per instance of the kind. */
export interface RankCollectives extends Record<string, string | number | null> {
  rank: number | null;
  device: number | null;
  operation: string;
  per_instance: number;
  comm_ms: number;
  /** Part of comm_ms without compute at the same time. */
  exposed_ms: number;
  /**
   * Time beyond the shortest kernel of the same collective on any rank, which is the rank that arrived last. Null if
   * kernels cannot be paired.
   */
  waiting_ms: number | null;
  /** Time that the kernel takes on the rank that arrived last. */
  transfer_ms: number | null;
  /** Part of exposed_ms that is waiting, by the share of waiting in each kernel. */
  exposed_waiting_ms: number | null;
  /** Instances in which at least half of the kernel's time is waiting. */
  waiting_instances: number | null;
  /** Why kernels cannot be paired; null if they are. */
  unpaired: string | null;
}

const sendUnpaired = 'a send does not name the rank that receives';

export const captureList = (captures: readonly string[]): string =>
  captures.map((id) => literal(id)).join(', ');

/** SQL condition: rows of two tables of collectives are of one call. */
export const isSameCall = (a: string, b: string): string =>
  callKey
    .split(', ')
    .map((name) => `${a}.${name} = ${b}.${name}`)
    .join(' AND ');

/** SQL that joins a table's rows with measured phases of a kind on the same rank; empty for `outside`. */
export const joinPhases = (row: string, kind: PhaseKind): string =>
  kind === 'outside'
    ? ''
    : `JOIN stages s ON s.capture_id = ${row}.capture_id AND s.stage_id = ${row}.stage_id
       JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id AND p.kind = '${kind}' AND NOT coalesce(p.warmup, false)`;

/** SQL that joins rows of `collective_rows` with their measured steps of a kind; empty for `outside`. */
export const joinSteps = (row: string, kind: PhaseKind): string =>
  kind === 'outside'
    ? ''
    : `JOIN stages p ON p.capture_id = ${row}.capture_id AND p.stage_id = ${row}.step_id AND p.kind = '${kind}' AND NOT coalesce(p.warmup, false)`;

/** How collectives are paired. */
export interface CollectiveSource {
  /** Number of ranks and devices with kernels in the captures. */
  ranks: number;
  /** The session has recorded calls (import --ranks). Communicator and sequence number pair them. */
  recorded: boolean;
}

/**
 * SQL of RankCollectives. A collective's kernel runs until the last rank has arrived, so its duration on the other
 * ranks includes waiting. The n-th kernel of a name in a kind of stage is one collective on all ranks if every rank has
 * the same number of them and they overlap in time (checked within one capture, which has one clock). The shortest of
 * them is the exchange; time beyond it is waiting for another rank. Sends and receives are not paired. With recorded
 * calls, a collective is the same call on all ranks of its communicator.
 */
export function collectivesSql(
  captures: readonly string[],
  kind: PhaseKind,
  { instances, ranks, recorded }: CollectiveSource & { instances: number },
): string {
  const perStage = (ns: string) => `sum(${ns}) / 1e6 / ${instances}`;
  const exposed = 'coalesce(exclusive_ns, dur_ns)';
  const phase = kind === 'outside' ? '0' : 'p.stage_id';
  const paired = recorded
    ? `SELECT c.rank, c.device, c.operation || coalesce(' (' || c.communicator_name || ')', '') AS kernel, ${phase} AS phase_id, c.dur_ns, c.exposed_ns AS exclusive_ns, k.shortest_ns AS shortest_ns,
         CASE WHEN k.shortest_ns IS NULL THEN CASE WHEN c.operation IN ('Send', 'Recv', '${sendAndRecv}') THEN '${sendUnpaired}' ELSE 'not every rank recorded the call' END END AS unpaired
       FROM collective_rows c ${joinSteps('c', kind)} LEFT JOIN collective_calls k ON ${isSameCall('k', 'c')}
       WHERE c.capture_id IN (${captureList(captures)})`
    : `WITH comm_kernels AS (
         SELECT k.capture_id, k.rank, k.device, coalesce(k.short_name, k.name) AS kernel, k.start_ns, k.dur_ns, k.exclusive_ns, ${phase} AS phase_id,
           row_number() OVER (PARTITION BY k.rank, k.device, coalesce(k.short_name, k.name) ORDER BY k.start_ns) AS nth
         FROM kernels k ${joinPhases('k', kind)} WHERE k.capture_id IN (${captureList(captures)}) AND k.class = 'communication'),
       by_ordinal AS (
         SELECT kernel, nth, count(*) AS n_kernels, min(dur_ns) AS shortest_ns, count(DISTINCT capture_id) > 1 OR max(start_ns) <= min(start_ns + dur_ns) AS overlap
         FROM comm_kernels GROUP BY ALL),
       pairs AS (
         SELECT kernel, CASE WHEN regexp_matches(kernel, 'send|recv', 'i') THEN '${sendUnpaired}' WHEN min(n_kernels) < ${ranks} THEN 'the ranks launch it a different number of times'
           WHEN count_if(overlap) < ${minOverlapShare} * count(*) THEN 'the n-th kernels of the ranks do not overlap in time' END AS unpaired
         FROM by_ordinal GROUP BY kernel)
       SELECT rank, device, kernel, phase_id, dur_ns, exclusive_ns, CASE WHEN unpaired IS NULL THEN shortest_ns END AS shortest_ns, unpaired
       FROM comm_kernels JOIN by_ordinal USING (kernel, nth) JOIN pairs USING (kernel)`;
  return `WITH paired AS (
       ${paired}),
     by_phase AS (
       SELECT rank, device, kernel, shortest_ns IS NULL AS is_unpaired, any_value(unpaired) AS unpaired, phase_id, count(*) AS n, sum(dur_ns) AS dur_ns, sum(${exposed}) AS exposed_ns, sum(shortest_ns) AS shortest_ns,
         sum(${exposed} * (1 - shortest_ns / greatest(dur_ns, 1))) AS exposed_waiting_ns
       FROM paired GROUP BY ALL)
     SELECT rank, device, kernel AS operation, sum(n) / ${instances} AS per_instance, ${perStage('dur_ns')} AS comm_ms, ${perStage('exposed_ns')} AS exposed_ms,
       ${perStage('dur_ns - shortest_ns')} AS waiting_ms, ${perStage('shortest_ns')} AS transfer_ms,
       ${perStage('exposed_waiting_ns')} AS exposed_waiting_ms, CASE WHEN NOT is_unpaired THEN count_if(2 * shortest_ns <= dur_ns) END AS waiting_instances, any_value(unpaired) AS unpaired
     FROM by_phase GROUP BY rank, device, kernel, is_unpaired ORDER BY rank, device, comm_ms DESC, operation`;
}

/** Chooses how to pair the collectives of these captures, and makes the tables that this needs. */
export async function collectiveSource(
  database: SessionDatabase,
  captures: readonly string[],
): Promise<CollectiveSource> {
  await makeKernelStreams(database);
  const inCaptures = `capture_id IN (${captureList(captures)})`;
  const [row] = await database.query<CollectiveSource>(
    `SELECT (SELECT count(*) FROM (SELECT DISTINCT rank, device FROM kernel_streams WHERE ${inCaptures})) AS ranks,
       EXISTS (SELECT 1 FROM collectives WHERE ${inCaptures} AND device IS NOT NULL) AS recorded`,
  );
  if (row!.recorded) await makeCollectives(database);
  return row!;
}

/** Waiting for other ranks inside collectives, and exchange time, ms, mean per instance. */
export interface RankWaiting {
  rank: number | null;
  device: number | null;
  comm_ms: number;
  /** Part of comm_ms without compute at the same time. */
  exposed_ms: number;
  waiting_ms: number;
  transfer_ms: number;
  exposed_waiting_ms: number;
  /** Instances in which at least half of a kernel's time is waiting: the maximum over kernels. */
  waiting_instances: number;
  /** Part of comm_ms in kernels that could not be paired, and the reason for most of it. */
  unpaired_ms: number;
  unpaired: string | null;
}

/** Sums over kernels by rank. The rank that waits least, which the others wait for, is first. */
export function waitingOfRanks(rows: readonly RankCollectives[]): RankWaiting[] {
  const waitingByRank = new Map<string, RankWaiting>();
  for (const row of rows) {
    const { rank, device } = row;
    const key = `${rank} ${device}`;
    const sum = waitingByRank.get(key) ?? {
      rank,
      device,
      comm_ms: 0,
      exposed_ms: 0,
      waiting_ms: 0,
      transfer_ms: 0,
      exposed_waiting_ms: 0,
      waiting_instances: 0,
      unpaired_ms: 0,
      unpaired: null,
    };
    sum.comm_ms += row.comm_ms;
    sum.exposed_ms += row.exposed_ms;
    sum.waiting_ms += row.waiting_ms ?? 0;
    sum.transfer_ms += row.transfer_ms ?? 0;
    sum.exposed_waiting_ms += row.exposed_waiting_ms ?? 0;
    sum.waiting_instances = Math.max(sum.waiting_instances, row.waiting_instances ?? 0);
    // The longest kernel of a rank comes first.
    sum.unpaired ??= row.unpaired;
    sum.unpaired_ms += row.waiting_ms === null ? row.comm_ms : 0;
    waitingByRank.set(key, sum);
  }
  return [...waitingByRank.values()].toSorted((a, b) => a.waiting_ms - b.waiting_ms);
}
