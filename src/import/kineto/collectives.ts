import { recordedCallsSql } from '../../model/collectives.js';
import { rankRanges } from '../../model/ranks.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/** c10d's names, of all versions: allreduce, all_reduce, _allgather_base, reduce_scatter_tensor_coalesced, all_to_allv, … */
const operations: readonly (readonly [pattern: string, operation: string])[] = [
  ['reduce_?scatter', 'ReduceScatter'],
  ['all_?reduce', 'AllReduce'],
  ['all_?gather', 'AllGather'],
  ['all_?to_?all', 'AllToAll'],
  ['broadcast', 'Broadcast'],
  ['^reduce', 'Reduce'],
  ['send', 'Send'],
  ['recv', 'Recv'],
];

/** Bytes of an element by c10::ScalarType's names; null for an unknown type. */
const elementBytes = `CASE WHEN dtype IN ('Double', 'Long', 'ComplexFloat') THEN 8 WHEN dtype IN ('Float', 'Int') THEN 4
  WHEN dtype IN ('Half', 'BFloat16', 'Short') THEN 2 WHEN dtype IN ('Byte', 'Char', 'Bool') OR dtype LIKE 'Float8%' THEN 1 END`;

/**
 * Saves the calls of the collectives that kernels name into recorded_calls. A communicator is its group's name and ranks, which are equal on
 * all of them. Calls are numbered by torch's sequence number if it differs for every call of their operation in the group, else in the
 * order of their starts; sends and receives in their order to or from one rank.
 */
export async function saveCollectives(
  workbench: Workbench,
  { capture_id }: Pick<ImportContext, 'capture_id'>,
): Promise<void> {
  const cases = operations.map(
    ([pattern, operation]) => `WHEN regexp_matches(name, '${pattern}') THEN '${operation}'`,
  );
  const groups = await workbench.query<{ code: number; text: string }>(
    'SELECT DISTINCT CAST(group_ranks AS BIGINT) AS code, text FROM kineto_collectives JOIN trace_names ON code = group_ranks WHERE NOT isnan(group_ranks)',
  );
  const groupNames = groups.map(({ code, text: list }) => {
    const ranks = list.replaceAll('"', '').split(',');
    const areNumbers = ranks.every((rank) => /^\d+$/.test(rank));
    // torch shortens long lists, which then stay unchanged.
    const ranksText = areNumbers ? rankRanges(ranks.map(Number)) : ranks.join(',');
    return `WHEN ${code} THEN '${ranksText.replaceAll("'", "''")}'`;
  });
  const groupRanks =
    groupNames.length === 0 ? "''" : `coalesce(CASE c.group_ranks ${groupNames.join(' ')} END, '')`;
  const text = (column: string) => `(SELECT text FROM trace_names WHERE code = c."${column}")`;
  const asInteger = (column: string) =>
    `CASE WHEN NOT isnan("${column}") THEN CAST("${column}" AS BIGINT) END`;
  await workbench.run(recordedCallsSql);
  await workbench.run(
    `INSERT INTO recorded_calls BY NAME WITH named_calls AS (
       SELECT CAST(start_ns AS BIGINT) AS start_ns, CAST(dur_ns AS BIGINT) AS dur_ns, ${asInteger('device')} AS device,
         ${text('name')} AS name, coalesce(${text('group')}, '') AS group_name, ${groupRanks} AS group_ranks,
         ${text('group_text')} AS group_text, ${text('dtype')} AS dtype,
         ${asInteger('group_size')} AS ranks, ${asInteger('sent')} AS sent, ${asInteger('received')} AS received, ${asInteger('sequence')} AS sequence, ${asInteger('peer')} AS peer
       FROM kineto_collectives c),
     calls AS (
       SELECT *, CASE ${cases.join(' ')} ELSE name END AS operation, ${elementBytes} AS element,
         group_name || CASE WHEN group_ranks = '' THEN '' ELSE '[' || group_ranks || ']' END AS communicator
       FROM named_calls),
     numbered_calls AS (
       SELECT *, peer IS NULL AND count(DISTINCT sequence) OVER w = count(*) OVER w AS has_torch_numbers,
         row_number() OVER (PARTITION BY communicator, operation, peer ORDER BY start_ns) - 1 AS nth
       FROM calls WINDOW w AS (PARTITION BY communicator, operation))
     SELECT '${capture_id}' AS capture_id, false AS on_host, start_ns, dur_ns, device, communicator, group_text AS communicator_name, ranks, operation, peer,
       CASE WHEN has_torch_numbers THEN sequence ELSE nth END AS sequence,
       element * CASE WHEN operation = 'ReduceScatter' THEN received ELSE sent END AS bytes, CASE WHEN operation = 'Send' THEN 0 ELSE element * received END AS received_bytes
     FROM numbered_calls`,
  );
}
