import { join } from 'node:path';
import { tables } from '../../model/tables.js';
import { openDatabase, quote } from '../../session/database.js';
import { type Session, sessionTables } from '../../session/open.js';
import { queryRows } from '../../session/query.js';
import { createOpenViews } from '../../session/views.js';

/** File in a part's folder: its collectives, each with its kernel's time, ready to be compared with those of other ranks. */
const callsFile = 'calls.parquet';
export const callsPath = (folder: string): string => join(folder, callsFile);

/**
 * What a part knows of its collectives: kernels that name their call (PyTorch's profiler), calls on the host (nsys) for which the
 * kernels must be found, or only the names of kernels.
 */
export const knownBySources = ['kernel', 'call', 'name'] as const;
type KnownBy = (typeof knownBySources)[number];

/** What the merge needs to know of a part's collectives before it reads them. */
export interface PartCalls {
  known_by: KnownBy;
  /** Rows of the file. */
  calls: number;
  /** Ranks with kernels: a report of nsys can have those of several processes, a trace of PyTorch is of one. */
  processes: number;
  /** The captures that they are of, all of one execution. */
  captures: string[];
  /** The lowest rank that each capture's rows have. */
  first_ranks: Record<string, number>;
}

/** Operation of a communication kernel by its name, where the source records no call. */
const operationByName = `CASE WHEN regexp_matches(name, 'reduce_?scatter', 'i') THEN 'ReduceScatter' WHEN regexp_matches(name, 'all_?reduce|cross_device_reduce', 'i') THEN 'AllReduce'
  WHEN regexp_matches(name, 'all_?gather', 'i') THEN 'AllGather' WHEN regexp_matches(name, 'all_?to_?all|dispatch|combine', 'i') THEN 'AllToAll'
  WHEN regexp_matches(name, 'send_?recv', 'i') THEN 'Send and Recv' WHEN regexp_matches(name, 'broadcast', 'i') THEN 'Broadcast' ELSE name END`;

const communicationKernels = "(SELECT * FROM timed_kernels WHERE class = 'communication')";
const recorded =
  'c.communicator, c.communicator_name, c.ranks, c.operation, c.sequence, c.bytes, c.received_bytes';

/**
 * SQL of a part's collectives; `rank` counts the part's processes from 0. Known by name, the n-th of a name is the same on all ranks.
 */
const callsSql: Record<KnownBy, string> = {
  name: `SELECT rank - min(rank) OVER () AS rank, coalesce(short_name, name) AS communicator, NULL::VARCHAR AS communicator_name, NULL::INTEGER AS ranks, ${operationByName} AS operation,
       row_number() OVER (PARTITION BY rank, device, coalesce(short_name, name) ORDER BY start_ns) - 1 AS sequence, NULL::BIGINT AS bytes, NULL::BIGINT AS received_bytes, device,
       pid, capture_id, stage_id, exclusive_ns AS exposed_ns, start_ns, dur_ns
     FROM ${communicationKernels}`,
  call: `SELECT 0 AS rank, ${recorded}, k.device, k.pid, k.capture_id, k.stage_id, k.exclusive_ns AS exposed_ns, k.start_ns, k.dur_ns
     FROM ${communicationKernels} k ASOF JOIN timed_collectives c ON k.api_start_ns >= c.start_ns WHERE k.api_start_ns <= c.start_ns + c.dur_ns`,
  // A trace of PyTorch is of one rank.
  kernel: `SELECT r.rank - min(r.rank) OVER () AS rank, ${recorded}, c.device, k.pid, c.capture_id, k.stage_id, k.exposed_ns, c.start_ns, c.dur_ns
     FROM timed_collectives c JOIN (SELECT capture_id, min(rank) AS rank FROM timed_kernels GROUP BY capture_id) r ON r.capture_id = c.capture_id
     LEFT JOIN (
       SELECT start_ns, dur_ns, device, capture_id, any_value(exclusive_ns) AS exposed_ns, any_value(stage_id) AS stage_id, any_value(pid) AS pid
       FROM ${communicationKernels} GROUP BY ALL) k ON k.start_ns = c.start_ns AND k.dur_ns = c.dur_ns AND k.capture_id = c.capture_id AND k.device IS NOT DISTINCT FROM c.device`,
};

type Database = Awaited<ReturnType<typeof openDatabase>>;

interface Timed {
  execution_id: string;
  calls: number;
  on_host: number;
  processes: number;
  captures: string[];
}

/** Writes the collectives of a part that was just recorded or imported into its folder: those of one execution. */
export async function writeCalls(session: Session, folder: string): Promise<PartCalls> {
  const { connection, close } = await openDatabase();
  try {
    await createOpenViews(connection, [sessionTables(session)], { withSessionId: false });
    const [found] = await queryRows<Timed>(
      connection,
      `SELECT execution_id, coalesce(calls, 0) AS calls, coalesce(on_host, 0) AS on_host, processes, captures
       FROM (SELECT execution_id, count(DISTINCT rank) AS processes, list(DISTINCT capture_id ORDER BY capture_id) AS captures FROM kernels GROUP BY execution_id) LEFT JOIN (
         SELECT execution_id, count(*) AS calls, count_if(timed_by = 'call_cpu') AS on_host FROM collectives GROUP BY execution_id) USING (execution_id)
       ORDER BY calls - on_host DESC, calls DESC, execution_id LIMIT 1`,
      [],
    );
    const { execution_id, calls: recorded, on_host, processes, captures }: Timed = found ?? noTimeline;
    for (const table of ['kernels', 'collectives'])
      await connection.run(
        `CREATE VIEW timed_${table} AS SELECT * FROM ${table} WHERE execution_id = ${quote(execution_id)}`,
      );
    const known = recorded === 0 ? 'name' : on_host > 0 ? 'call' : 'kernel';
    const { rowsChanged: calls } = await connection.run(
      `COPY (SELECT rank::INTEGER AS rank, ${quote(execution_id)} AS execution_id, * EXCLUDE (rank) FROM (${callsSql[known]}) ORDER BY start_ns, communicator, sequence)
       TO ${quote(callsPath(folder))} (FORMAT parquet, COMPRESSION zstd)`,
    );
    const first_ranks = await firstRanks(session, connection);
    return { known_by: known, calls, processes, captures, first_ranks };
  } finally {
    await close();
  }
}

const noTimeline: Timed = { execution_id: '', calls: 0, on_host: 0, processes: 1, captures: [] };

async function firstRanks(
  { manifest }: Session,
  connection: Database['connection'],
): Promise<Record<string, number>> {
  const selects = Object.keys(manifest.tables)
    .filter((name) => name in tables)
    .map((name) => `SELECT capture_id, rank FROM ${name}`);
  if (selects.length === 0) return {};
  const rows = await queryRows<{ capture_id: string; first: number }>(
    connection,
    `SELECT capture_id, min(rank) AS first FROM (${selects.join(' UNION ALL ')}) WHERE rank IS NOT NULL GROUP BY capture_id`,
    [],
  );
  return Object.fromEntries(rows.map(({ capture_id, first }) => [capture_id, first]));
}
