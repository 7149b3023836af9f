import { join } from 'node:path';
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
  /** The least rank that the part's tables have. */
  first_rank: number;
}

/** Operation of a communication kernel by its name, where the source records no call. */
const operationByName = `CASE WHEN regexp_matches(name, 'reduce_?scatter', 'i') THEN 'ReduceScatter' WHEN regexp_matches(name, 'all_?reduce|cross_device_reduce', 'i') THEN 'AllReduce'
  WHEN regexp_matches(name, 'all_?gather', 'i') THEN 'AllGather' WHEN regexp_matches(name, 'all_?to_?all|dispatch|combine', 'i') THEN 'AllToAll'
  WHEN regexp_matches(name, 'send_?recv', 'i') THEN 'Send and Recv' WHEN regexp_matches(name, 'broadcast', 'i') THEN 'Broadcast' ELSE name END`;

const communicationKernels = "(SELECT * FROM kernels WHERE class = 'communication')";
const recorded =
  'c.communicator, c.communicator_name, c.ranks, c.operation, c.sequence, c.bytes, c.received_bytes';

/** SQL of a part's collectives; `rank` counts the part's processes from 0. Known by name, the n-th of a name is the same on all ranks. */
const callsSql: Record<KnownBy, string> = {
  name: `SELECT rank - min(rank) OVER () AS rank, coalesce(short_name, name) AS communicator, NULL::VARCHAR AS communicator_name, NULL::INTEGER AS ranks, ${operationByName} AS operation,
       row_number() OVER (PARTITION BY rank, device, coalesce(short_name, name) ORDER BY start_ns) - 1 AS sequence, NULL::BIGINT AS bytes, NULL::BIGINT AS received_bytes, device,
       pid, stage_id, exclusive_ns AS exposed_ns, start_ns, dur_ns
     FROM ${communicationKernels}`,
  call: `SELECT 0 AS rank, ${recorded}, k.device, k.pid, k.stage_id, k.exclusive_ns AS exposed_ns, k.start_ns, k.dur_ns
     FROM ${communicationKernels} k ASOF JOIN collectives c ON k.api_start_ns >= c.start_ns WHERE k.api_start_ns <= c.start_ns + c.dur_ns`,
  kernel: `SELECT 0 AS rank, ${recorded}, c.device, k.pid, k.stage_id, k.exposed_ns, c.start_ns, c.dur_ns
     FROM collectives c LEFT JOIN (
       SELECT start_ns, dur_ns, device, any_value(exclusive_ns) AS exposed_ns, any_value(stage_id) AS stage_id, any_value(pid) AS pid
       FROM ${communicationKernels} GROUP BY ALL) k ON k.start_ns = c.start_ns AND k.dur_ns = c.dur_ns AND k.device IS NOT DISTINCT FROM c.device`,
};

/** Writes the collectives of a part that was just imported into its folder. */
export async function writeCalls(session: Session, folder: string): Promise<PartCalls> {
  const { connection, close } = await openDatabase();
  try {
    await createOpenViews(connection, [sessionTables(session)], { withSessionId: false });
    const [found] = await queryRows<{
      calls: number;
      on_host: number;
      processes: number;
      first: number | null;
    }>(
      connection,
      `SELECT (SELECT count(*) FROM collectives) AS calls, (SELECT count_if(timed_by = 'call_cpu') FROM collectives) AS on_host,
         count(DISTINCT rank) AS processes, min(rank) AS first FROM kernels`,
      [],
    );
    const known = found!.calls === 0 ? 'name' : found!.on_host > 0 ? 'call' : 'kernel';
    const { rowsChanged: calls } = await connection.run(
      `COPY (SELECT rank::INTEGER AS rank, * EXCLUDE (rank) FROM (${callsSql[known]}) ORDER BY start_ns, communicator, sequence)
       TO ${quote(callsPath(folder))} (FORMAT parquet, COMPRESSION zstd)`,
    );
    const ofPyTorch = session.manifest.captures.every(({ importer }) => importer === 'kineto');
    return {
      known_by: known,
      calls,
      processes: ofPyTorch ? 1 : Math.max(1, found!.processes),
      first_rank: found!.first ?? 0,
    };
  } finally {
    await close();
  }
}
