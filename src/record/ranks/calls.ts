import { recordedCallsSql, sendAndRecv } from '../../model/collectives.js';
import type { Capture } from '../../model/manifest.js';
import type { Workbench } from '../../model/workbench.js';

/**
 * How the collectives of a capture are known: kernels with their call (PyTorch's profiler), host calls that must be matched with kernels
 * (nsys), or only kernel names.
 */
export const knownBySources = ['kernel', 'call', 'name'] as const;
type KnownBy = (typeof knownBySources)[number];

/** The collectives of an execution of a part of a job. */
interface ExecutionCalls {
  execution_id: string;
  known_by: KnownBy;
  /** Number of rows. */
  calls: number;
}

/** Contents of the table `collectives` of a part of a job. */
export interface PartCalls {
  executions: ExecutionCalls[];
  /** Number of ranks with kernels: an nsys report can have several processes, a PyTorch trace has one. */
  processes: number;
}

/** A part without collectives. */
export const noCalls: PartCalls = { executions: [], processes: 1 };

/** SQL of the operation of a communication kernel by its name, for sources without calls. */
const operationByName = `CASE WHEN regexp_matches(name, 'reduce_?scatter', 'i') THEN 'ReduceScatter' WHEN regexp_matches(name, 'all_?reduce|cross_device_reduce', 'i') THEN 'AllReduce'
  WHEN regexp_matches(name, 'all_?gather', 'i') THEN 'AllGather' WHEN regexp_matches(name, 'all_?to_?all|dispatch|combine', 'i') THEN 'AllToAll'
  WHEN regexp_matches(name, 'send_?recv', 'i') THEN '${sendAndRecv}' WHEN regexp_matches(name, 'broadcast', 'i') THEN 'Broadcast' ELSE coalesce(short_name, name) END`;

const communicationKernels = "(SELECT * FROM timed_kernels WHERE class = 'communication')";
const calledBy = 'capture_id, pid, tid, start_ns';

/** SQL of kernels known only by name: the n-th call of a name is the same one on all ranks. */
const callsByName = (kernels: string): string =>
  `SELECT rank, coalesce(short_name, name) AS communicator, NULL::VARCHAR AS communicator_name, NULL::INTEGER AS ranks, ${operationByName} AS operation,
     row_number() OVER (PARTITION BY rank, device, coalesce(short_name, name) ORDER BY start_ns) - 1 AS sequence, NULL::INTEGER AS peer, NULL::BIGINT AS bytes, NULL::BIGINT AS received_bytes, device,
     pid, capture_id, stage_id, exclusive_ns AS exposed_ns, start_ns, dur_ns
   FROM ${kernels}`;

/** SQL of recorded calls with the times of their kernels. */
const recordedCalls: Record<Exclude<KnownBy, 'name'>, string> = {
  // A group launches its operations together on every device of the thread. Collectives share its sizes; sends and receives are of one device
  // each. Groups in which some device lacks a call are left out. With several kernels on a device it is unknown which kernel carries out which
  // of several operations. A process numbers the calls of all its devices, so those are counted again.
  call: `SELECT rank, communicator, communicator_name, ranks, operation, peer, bytes // sharing AS bytes, received_bytes // sharing AS received_bytes,
       CASE WHEN process_devices > 1 THEN row_number() OVER (PARTITION BY capture_id, rank, communicator, operation, peer ORDER BY call_start_ns) - 1 ELSE sequence END AS sequence,
       device, pid, capture_id, stage_id, exclusive_ns * nth // calls - exclusive_ns * (nth - 1) // calls AS exposed_ns, start_ns, dur_ns
     FROM (
       SELECT k.*, c.* EXCLUDE (capture_id, pid, tid, start_ns, dur_ns, device), CASE WHEN device_place IS NULL THEN len(devices) ELSE 1 END AS sharing,
         count(*) OVER (PARTITION BY k.capture_id, k.pid, k.device, k.start_ns, k.dur_ns) AS calls, row_number() OVER (PARTITION BY k.capture_id, k.pid, k.device, k.start_ns, k.dur_ns ORDER BY operation, peer) AS nth,
         bool_and(repeats % len(devices) = 0) OVER (PARTITION BY k.capture_id, k.pid, k.tid, call_start_ns) AS complete
       FROM (
         SELECT k.*, w.start_ns AS call_start_ns, count(*) OVER (PARTITION BY k.capture_id, k.pid, k.tid, w.start_ns, k.device) AS launched,
           list(DISTINCT k.device ORDER BY k.device) OVER (PARTITION BY k.capture_id, k.pid, k.tid, w.start_ns) AS devices, count(DISTINCT k.device) OVER (PARTITION BY k.capture_id, k.pid) AS process_devices
         FROM ${communicationKernels} k ASOF JOIN (
           SELECT ${calledBy}, max(dur_ns) AS dur_ns FROM timed_calls GROUP BY ALL) w
         ON k.capture_id = w.capture_id AND k.pid = w.pid AND k.tid = w.tid AND k.api_start_ns >= w.start_ns
         WHERE k.api_start_ns <= w.start_ns + w.dur_ns) k
       JOIN timed_calls c ON k.capture_id = c.capture_id AND k.pid = c.pid AND k.tid = c.tid AND k.call_start_ns = c.start_ns
       WHERE device_place IS NULL OR len(devices) = 1 OR devices[device_place + 1] = k.device)
     WHERE complete AND (calls = 1 OR launched = 1)`,
  // A PyTorch trace has one rank.
  kernel: `SELECT r.rank, c.communicator, c.communicator_name, c.ranks, c.operation, c.sequence, c.peer, c.bytes, c.received_bytes, c.device, k.pid, c.capture_id, k.stage_id, k.exposed_ns, c.start_ns, c.dur_ns
     FROM timed_calls c JOIN (SELECT capture_id, min(rank) AS rank FROM timed_kernels GROUP BY capture_id) r ON r.capture_id = c.capture_id
     LEFT JOIN (
       SELECT start_ns, dur_ns, device, capture_id, any_value(exclusive_ns) AS exposed_ns, any_value(stage_id) AS stage_id, any_value(pid) AS pid
       FROM ${communicationKernels} GROUP BY ALL) k ON k.start_ns = c.start_ns AND k.dur_ns = c.dur_ns AND k.capture_id = c.capture_id AND k.device IS NOT DISTINCT FROM c.device`,
};

/**
 * SQL of all collectives. An engine's own kernels (vLLM's all-reduce) and replayed CUDA graphs have no recorded call, so next to recorded calls
 * these kernels are known by name.
 */
const callsSql = (knownBy: KnownBy): string =>
  knownBy === 'name'
    ? `SELECT *, true AS by_name FROM (${callsByName(communicationKernels)})`
    : `WITH calls_with_kernels AS (${recordedCalls[knownBy]})
       SELECT *, false AS by_name FROM calls_with_kernels
       UNION ALL BY NAME
       SELECT *, true AS by_name FROM (${callsByName(`(
         SELECT * FROM ${communicationKernels} k ANTI JOIN calls_with_kernels r
         ON k.capture_id = r.capture_id AND k.device IS NOT DISTINCT FROM r.device AND k.start_ns = r.start_ns AND k.dur_ns = r.dur_ns)`)})`;

/** Minimum share of a name's calls that overlap in time on all ranks; below it, order does not show which calls belong together. */
const minOverlapping = 0.99;

/**
 * SQL of the rows if all ranks are present. Kernels known by name are used only if every rank calls the name equally often, and at the same
 * time if one capture has all ranks.
 */
const pairedSql = `(SELECT * EXCLUDE (by_name) FROM all_calls WHERE NOT by_name OR communicator IN (
   SELECT communicator FROM (
     SELECT communicator, sequence, count(*) AS calling_ranks, count(DISTINCT capture_id) > 1 OR max(start_ns) <= min(start_ns + dur_ns) AS concurrent FROM all_calls WHERE by_name GROUP BY ALL)
   GROUP BY communicator HAVING min(calling_ranks) = (SELECT count(DISTINCT rank) FROM all_calls) AND count_if(concurrent) >= ${minOverlapping} * count(*)))`;

/** SQL of the rows of a part of a job. When parts are joined, the groups of kernels known by name are found (named-groups.ts). */
const partSql = '(SELECT * EXCLUDE (by_name) FROM all_calls)';

/**
 * SQL that turns a send and the matching receive of the other rank into one call of two ranks, numbered per direction.
 * @param calls with the ranks of the whole job
 */
export const withPairs = (calls: string): string =>
  `SELECT * REPLACE (CASE WHEN peer IS NULL THEN communicator WHEN operation = 'Send' THEN concat(communicator, ' ', rank, '→', peer) ELSE concat(communicator, ' ', peer, '→', rank) END AS communicator,
     CASE WHEN peer IS NULL THEN operation ELSE '${sendAndRecv}' END AS operation, CASE WHEN peer IS NULL THEN ranks ELSE 2 END AS ranks) FROM ${calls}`;

/** SQL of the ranks of each communicator, in order. @param key columns that identify a communicator */
export const membersSql = (calls: string, key: string): string =>
  `SELECT ${key}, list(DISTINCT rank ORDER BY rank) AS members FROM ${calls} GROUP BY ALL`;

/**
 * SQL of a peer's rank in the job. NCCL's calls count it within the communicator, torch's calls within the job.
 * @param knownBy SQL of how the call is known; `members` has the ranks of its communicator
 */
export const jobPeerSql = (knownBy: string): string =>
  `CASE WHEN ${knownBy} = 'call' THEN members[peer + 1] ELSE peer END`;

/**
 * NCCL's own call of an all-to-all has the size for one peer and no received bytes, other calls the size for all peers.
 * @param knownBy SQL of how the call is known
 */
export const totalBytesSql = (knownBy: string): string =>
  `CASE WHEN ${knownBy} = 'call' AND operation = 'AllToAll' AND received_bytes IS NULL THEN bytes * ranks ELSE bytes END`;

interface CollectiveExecution {
  execution_id: string;
  calls: number;
  on_host: number;
  processes: number;
  captures: { capture_id: string; host: string }[];
}

/** Executions with collectives of several ranks; of a part, all with kernels. */
function findExecutions(
  workbench: Workbench,
  kernels: string,
  isPart: boolean,
): Promise<CollectiveExecution[]> {
  return workbench.query<CollectiveExecution>(
    `WITH captures_with_kernels AS (
       SELECT execution_id, capture_id, any_value(host) AS host, list(DISTINCT rank) AS ranks FROM ${kernels} ${isPart ? '' : "WHERE class = 'communication'"} GROUP BY ALL),
     call_counts AS (SELECT capture_id, count(*) AS calls, count_if(on_host) AS on_host FROM recorded_calls GROUP BY ALL),
     executions AS (
       SELECT execution_id, coalesce(sum(calls), 0)::INTEGER AS calls, coalesce(sum(on_host), 0)::INTEGER AS on_host, len(list_distinct(flatten(list(ranks)))) AS processes,
         list({capture_id: capture_id, host: host} ORDER BY capture_id) AS captures
       FROM captures_with_kernels LEFT JOIN call_counts USING (capture_id) GROUP BY execution_id)
     SELECT * FROM executions ${isPart ? '' : 'WHERE processes > 1'} ORDER BY execution_id`,
  );
}

/**
 * Writes the collectives of each execution into the session's `collectives`.
 * @param isPart whether this is a part of a job: its ranks count from 0, and group sizes are found when all parts are joined. Otherwise all
 * ranks are present
 * @returns null without kernels, and for a whole job in which fewer than two ranks communicate
 */
export async function saveCalls(
  workbench: Workbench,
  captures: readonly Capture[],
  { isPart }: { isPart: boolean },
): Promise<{ calls: PartCalls; ranks: number[] } | null> {
  await workbench.flush();
  const kernels = workbench.savedRows(
    'kernels',
    captures.map(({ capture_id }) => capture_id),
  );
  if (kernels === null) return null;
  await workbench.run(recordedCallsSql);
  const executions = await findExecutions(workbench, kernels, isPart);
  if (executions.length === 0) return null;
  const saved: ExecutionCalls[] = [];
  const ranks = new Set<number>();
  for (const execution of executions) {
    const knownBy = execution.calls === 0 ? 'name' : execution.on_host > 0 ? 'call' : 'kernel';
    const { calls, ranks: executionRanks } = await saveExecution(workbench, execution, {
      kernels,
      knownBy,
      isPart,
    });
    if (calls === 0) continue;
    saved.push({ execution_id: execution.execution_id, known_by: knownBy, calls });
    for (const rank of executionRanks) ranks.add(rank);
  }
  await workbench.run('DROP TABLE recorded_calls');
  if (saved.length === 0 && !isPart) return null;
  const processes = Math.max(...executions.map((execution) => execution.processes));
  return { calls: { executions: saved, processes }, ranks: [...ranks].toSorted((a, b) => a - b) };
}

async function saveExecution(
  workbench: Workbench,
  execution: CollectiveExecution,
  { kernels, knownBy, isPart }: { kernels: string; knownBy: KnownBy; isPart: boolean },
): Promise<{ calls: number; ranks: readonly number[] }> {
  await workbench.run(
    `CREATE VIEW timed_kernels AS SELECT * FROM ${kernels} WHERE execution_id = '${execution.execution_id}'`,
  );
  await workbench.run(
    'CREATE VIEW timed_calls AS SELECT * FROM recorded_calls SEMI JOIN timed_kernels USING (capture_id)',
  );
  await workbench.run(`CREATE TABLE all_calls AS ${callsSql(knownBy)}`);
  const usableSql = isPart ? partSql : pairedSql;
  const [row] = await workbench.query<{ ranks: number[] | null }>(
    `SELECT list(DISTINCT rank ORDER BY rank) AS ranks FROM ${usableSql}`,
  );
  const ranks = row?.ranks ?? [];
  const rows = isPart
    ? `SELECT * REPLACE (rank - (SELECT min(rank) FROM all_calls) AS rank) FROM ${usableSql}`
    : withPairs(`(SELECT * REPLACE (${totalBytesSql(`'${knownBy}'`)} AS bytes) FROM (
         SELECT * EXCLUDE (members) REPLACE (coalesce(ranks, len(members)) AS ranks, ${jobPeerSql(`'${knownBy}'`)} AS peer)
         FROM ${usableSql} JOIN (${membersSql('all_calls', 'communicator')}) USING (communicator)))`);
  let calls = 0;
  for (const { capture_id, host } of ranks.length === 0 ? [] : execution.captures)
    calls += await workbench.save(
      'collectives',
      capture_id,
      `SELECT * FROM (${rows}) WHERE capture_id = '${capture_id}' ORDER BY start_ns, communicator, sequence`,
      { execution_id: execution.execution_id, host, timed_by: 'kernel_gpu' },
    );
  for (const object of ['VIEW timed_calls', 'VIEW timed_kernels', 'TABLE all_calls'])
    await workbench.run(`DROP ${object}`);
  return { calls, ranks };
}
