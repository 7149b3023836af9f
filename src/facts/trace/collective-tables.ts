import { sendAndRecv } from '../../model/collectives.js';
import type { SessionDatabase } from '../../session/query.js';
import { placedTransfersSql } from './step-transfers.js';

/**
 * Operations that no rank finishes before the last rank has arrived. Timelines may also record a send and its receive
 * as one kernel.
 */
const jointOperations = "('AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll')";

const key = 'execution_id, communicator, sequence_of, rank, sequence';

/** Columns that identify a call. Torch numbers its groups from 0 in every execution. */
export const callKey = 'execution_id, communicator, operation, sequence';

/** SQL to order communicators, or other names with numbers, by number: tp9 before tp10. */
export const byNumber = (name: string): string =>
  String.raw`regexp_replace(regexp_replace(${name}, '(\d+)', '${'0'.repeat(20)}\1', 'g'), '\d*(\d{20})', '\1', 'g'), ${name}`;

/** SQL of the collective tables, each after the tables that it reads (model/derived-tables.ts). */
export const collectiveTables = {
  collective_rows: `WITH placed AS (
     SELECT c.*, s.phase_id AS step_id, false AS between_steps FROM collectives c LEFT JOIN stages s ON s.capture_id = c.capture_id AND s.stage_id = c.stage_id WHERE c.peer IS NULL
     UNION ALL BY NAME ${placedTransfersSql('true')}),
   sized AS (
     SELECT c.* REPLACE (CASE WHEN c.operation = 'AllToAll' THEN one_size ELSE c.bytes END AS bytes, coalesce(c.nodes, hosts)::INTEGER AS nodes),
       CASE WHEN peer IS NULL THEN c.operation ELSE '${sendAndRecv}' END AS sequence_of, CASE WHEN device IS NULL THEN c.ranks ELSE recorded END AS expected_ranks
     FROM placed c
     LEFT JOIN (SELECT execution_id, communicator, operation, median(bytes)::BIGINT AS one_size FROM collectives GROUP BY ALL) USING (execution_id, communicator, operation)
     LEFT JOIN (SELECT execution_id, communicator, count(DISTINCT rank) AS recorded, nullif(count(DISTINCT host), 1) AS hosts FROM collectives GROUP BY ALL) USING (execution_id, communicator)),
   repeated AS (SELECT ${key} FROM sized GROUP BY ALL HAVING count(*) > 1)
   SELECT * FROM sized ANTI JOIN repeated USING (${key})
   UNION ALL (SELECT DISTINCT ON (${key}) * FROM sized SEMI JOIN repeated USING (${key}) ORDER BY ${key}, written_ns)`,
  collective_calls: `WITH times AS (
     SELECT ${callKey}, any_value(bytes) AS bytes, any_value(ranks) AS ranks, any_value(nodes) AS nodes, count(*) AS recorded_ranks, sum(dur_ns)::BIGINT AS time_ns,
       min({ns: dur_ns, rank: rank, host: host}, 2) AS shortest, max({ns: dur_ns, rank: rank, host: host}, 2) AS longest
     FROM collective_rows WHERE (operation IN ${jointOperations} OR operation = '${sendAndRecv}' AND peer IS NOT NULL) AND dur_ns IS NOT NULL AND timed_by = 'kernel_gpu'
     GROUP BY ${callKey}
     HAVING count(*) = min(expected_ranks) AND count(*) > 1 AND min(ranks) = max(ranks) AND min(bytes) IS NOT DISTINCT FROM max(bytes))
   SELECT * EXCLUDE (shortest, longest), shortest[1].ns AS shortest_ns, shortest[2].ns AS second_ns, longest[1].ns AS longest_ns,
     CASE WHEN shortest[2].ns > shortest[1].ns THEN shortest[1].rank END AS last_rank, shortest[1].host AS last_host,
     CASE WHEN longest[2].ns < longest[1].ns THEN longest[1].rank END AS longest_rank, longest[1].host AS longest_host
   FROM times`,
} as const;

/** Makes the tables on this connection; their rows are computed once per session. */
export async function makeCollectives(database: SessionDatabase): Promise<void> {
  for (const [name, sql] of Object.entries(collectiveTables)) await database.once(name, '', sql);
}
