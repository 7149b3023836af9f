import { waitedFor } from '../trace/collectives.js';

/**
 * Common table expressions, to be followed by a SELECT:
 * - `own`: each operation of a rank once, whatever was imported twice; `counted` names what its numbers count. Ranks of an
 *   all-to-all may send other amounts each time: its calls have one size, the median. `present` is how many ranks are judged as
 *   all: those that a job's timelines are there of; those of the communicator in NCCL's own logs.
 * - `complete`: operations that every rank of the communicator recorded by the GPU's clock, with the shortest, the second
 *   shortest and the longest of the ranks' times. The rank with the shortest arrived last. Times are whole µs: where two are
 *   equal no rank was last.
 */
export const collectiveRows = `WITH own AS (
     SELECT DISTINCT ON (communicator, counted, rank, sequence) * REPLACE (
         CASE WHEN operation = 'AllToAll' THEN (median(bytes) OVER (PARTITION BY communicator, operation))::BIGINT ELSE bytes END AS bytes),
       CASE WHEN peer IS NULL THEN operation ELSE 'Send and Recv' END AS counted,
       CASE WHEN device IS NULL THEN ranks ELSE count(DISTINCT rank) OVER (PARTITION BY communicator) END AS present
     FROM collectives ORDER BY communicator, counted, rank, sequence, written_ns),
   times AS (
     SELECT communicator, operation, sequence, any_value(bytes) AS bytes, any_value(ranks) AS ranks, any_value(nodes) AS nodes,
       list_sort(list({ns: dur_ns, rank: rank, host: host})) AS by_time
     FROM own WHERE operation IN ${waitedFor} AND dur_ns IS NOT NULL AND timed_by = 'kernel_gpu'
     GROUP BY communicator, operation, sequence
     HAVING count(*) = min(present) AND count(*) > 1 AND min(ranks) = max(ranks) AND min(bytes) = max(bytes)),
   complete AS (
     SELECT communicator, operation, sequence, bytes, ranks, nodes,
       len(by_time) AS among, list_sum(list_transform(by_time, lambda one: one.ns)) AS time_ns, by_time[1].ns AS shortest_ns, by_time[2].ns AS second_ns, by_time[-1].ns AS longest_ns,
       CASE WHEN by_time[2].ns > by_time[1].ns THEN by_time[1].rank END AS last_rank, by_time[1].host AS last_host,
       CASE WHEN by_time[-2].ns < by_time[-1].ns THEN by_time[-1].rank END AS longest_rank, by_time[-1].host AS longest_host
     FROM times)`;

/** Rows by operation, size and number of ranks. */
export const groupsSql = `${collectiveRows}
   SELECT operation, bytes, ranks, nodes, any_value(counted) AS counted, count(*) AS recorded, count(DISTINCT communicator) AS communicators,
     list_sort(list(DISTINCT communicator)) AS named, list_sort(list(DISTINCT timed_by)) AS timed_by, count(dur_ns) AS timed,
     quantile_cont(dur_ns, 0.5) AS p50, quantile_cont(dur_ns, 0.99) AS p99,
     min(bus_bytes_per_s * dur_ns) / 1e9 AS least_bus_bytes, max(bus_bytes_per_s * dur_ns) / 1e9 AS most_bus_bytes
   FROM own GROUP BY operation, bytes, ranks, nodes ORDER BY sum(dur_ns) DESC NULLS LAST, operation, bytes, ranks, nodes`;

/** The same groups, of complete operations. */
export const completeSql = `${collectiveRows}
   SELECT operation, bytes, ranks, nodes, count(*) AS complete, median(shortest_ns) AS transfer, median(longest_ns - shortest_ns) AS waiting,
     sum(time_ns)::BIGINT AS time_ns, sum(among * shortest_ns)::BIGINT AS wire_ns
   FROM complete GROUP BY operation, bytes, ranks, nodes`;

/** The rank of each group that most often was the last (`last`) or had the longest time (`longest`). */
export const rankSharesSql = (which: 'last' | 'longest'): string => `${collectiveRows},
   counts AS (
     SELECT operation, bytes, ranks, nodes, communicator, ${which}_rank AS rank, any_value(${which}_host) AS host, count(*) AS operations
     FROM complete GROUP BY operation, bytes, ranks, nodes, communicator, ${which}_rank)
   SELECT *, sum(operations) OVER (PARTITION BY operation, bytes, ranks, nodes, communicator)::BIGINT AS "of"
   FROM counts
   QUALIFY rank IS NOT NULL AND row_number() OVER (PARTITION BY operation, bytes, ranks, nodes ORDER BY rank IS NULL, operations DESC, communicator, rank) = 1`;

/** How many numbers of each rank's sequence lie between its first and last recorded one, summed over ranks. */
export const communicatorsSql = `${collectiveRows},
   by_rank AS (
     SELECT communicator, counted, rank, count(*) AS recorded, max(sequence) - min(sequence) + 1 AS calls, any_value(communicator_name) AS name,
       any_value(ranks) AS ranks, any_value(nodes) AS nodes
     FROM own GROUP BY communicator, counted, rank)
   SELECT communicator, counted AS operation, any_value(name) AS name, any_value(ranks) AS ranks, any_value(nodes) AS nodes,
     count(*) AS recorded_ranks, sum(recorded) AS recorded, sum(calls) AS calls
   FROM by_rank GROUP BY communicator, counted ORDER BY recorded DESC, communicator, counted`;

export const repeatedSql = `${collectiveRows} SELECT (SELECT count(*) FROM collectives) - (SELECT count(*) FROM own) AS repeated`;
