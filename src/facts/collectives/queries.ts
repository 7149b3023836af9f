import { byNumber } from '../trace/collective-tables.js';

/** Rows by execution, operation, size, and number of ranks and nodes. */
export const groupsSql = `SELECT execution_id, operation, bytes, ranks, nodes, any_value(sequence_of) AS sequence_of, count(*) AS recorded, count(DISTINCT communicator) AS communicators,
     list_sort(list(DISTINCT communicator)) AS named, list_sort(list(DISTINCT timed_by)) AS timed_by, count(dur_ns) AS timed,
     quantile_cont(dur_ns, 0.5) AS p50, quantile_cont(dur_ns, 0.99) AS p99,
     min(bus_bytes_per_s * dur_ns) / 1e9 AS min_bus_bytes, max(bus_bytes_per_s * dur_ns) / 1e9 AS max_bus_bytes
   FROM collective_rows GROUP BY execution_id, operation, bytes, ranks, nodes ORDER BY sum(dur_ns) DESC NULLS LAST, operation, bytes, ranks, nodes, execution_id`;

/** The same groups over operations that every rank recorded. */
export const completeSql = `SELECT execution_id, operation, bytes, ranks, nodes, count(*) AS complete, median(shortest_ns) AS transfer, median(longest_ns - shortest_ns) AS waiting,
     sum(time_ns)::BIGINT AS time_ns, sum(recorded_ranks * shortest_ns)::BIGINT AS wire_ns
   FROM collective_calls GROUP BY execution_id, operation, bytes, ranks, nodes`;

/** The rank of each group that was `last`, or took `longest`, most often. */
export const rankSharesSql = (kind: 'last' | 'longest'): string => `WITH counts AS (
     SELECT execution_id, operation, bytes, ranks, nodes, communicator, ${kind}_rank AS rank, any_value(${kind}_host) AS host, count(*) AS operations
     FROM collective_calls GROUP BY execution_id, operation, bytes, ranks, nodes, communicator, ${kind}_rank)
   SELECT *, sum(operations) OVER (PARTITION BY execution_id, operation, bytes, ranks, nodes, communicator)::BIGINT AS total_operations
   FROM counts
   QUALIFY rank IS NOT NULL AND row_number() OVER (PARTITION BY execution_id, operation, bytes, ranks, nodes ORDER BY rank IS NULL, operations DESC, ${byNumber('communicator')}, rank) = 1`;

/** Length of each rank's recorded sequence, from its first to its last number, summed over ranks. */
export const communicatorsSql = `WITH by_rank AS (
     SELECT execution_id, communicator, sequence_of, rank, count(*) AS recorded, max(sequence) - min(sequence) + 1 AS calls, any_value(communicator_name) AS name,
       any_value(ranks) AS ranks, any_value(nodes) AS nodes
     FROM collective_rows GROUP BY execution_id, communicator, sequence_of, rank)
   SELECT execution_id, communicator, sequence_of AS operation, any_value(name) AS name, any_value(ranks) AS ranks, any_value(nodes) AS nodes,
     count(*) AS recorded_ranks, sum(recorded) AS recorded, sum(calls) AS calls
   FROM by_rank GROUP BY execution_id, communicator, sequence_of ORDER BY recorded DESC, ${byNumber('communicator')}, sequence_of, execution_id`;

export const repeatedSql = `SELECT (SELECT count(*) FROM collectives) - (SELECT count(*) FROM collective_rows) AS repeated`;
