import type { IssueCode } from '../../../model/issue-codes.js';
/** The rows behind an issue of a load test (src/facts/serving/answers.ts). */
const requestCountsSql = `SELECT execution_id, count(*) AS requests, count_if(status = 'ok') AS ok, count_if(status NOT IN ('ok', 'cancelled')) AS failed, count_if(status = 'cancelled') AS cancelled,
     count_if(status = 'ok' AND output_tokens < requested_output_tokens) AS shorter, count_if(status = 'ok' AND output_tokens > requested_output_tokens) AS longer,
     max(error) AS error_example
   FROM requests WHERE NOT coalesce(warmup, false) GROUP BY execution_id ORDER BY execution_id`;

const cachedTokensSql = `SELECT execution_id, 'requests' AS source, count(*) AS n, sum(cached_tokens)::DOUBLE AS cached, sum(input_tokens)::DOUBLE AS prompt_tokens
   FROM requests WHERE status = 'ok' AND NOT coalesce(warmup, false) AND cached_tokens IS NOT NULL GROUP BY execution_id
   UNION ALL
   SELECT execution_id, scope, count(*), (max(value) FILTER (metric = 'prefix_cache_hits_total') - min(value) FILTER (metric = 'prefix_cache_hits_total'))::DOUBLE,
     (max(value) FILTER (metric = 'prefix_cache_queries_total') - min(value) FILTER (metric = 'prefix_cache_queries_total'))::DOUBLE
   FROM telemetry WHERE metric IN ('prefix_cache_hits_total', 'prefix_cache_queries_total') GROUP BY ALL ORDER BY execution_id, source`;

/** How late requests were sent and how busy the client was; other evidence exists only inside the client. */
const sendLagSql = `SELECT execution_id, count(*) AS requests, round(quantile_cont((sent_ns - scheduled_ns) / 1e6, 0.5), 3) AS send_lag_p50_ms,
     round(quantile_cont((sent_ns - scheduled_ns) / 1e6, 0.99), 3) AS send_lag_p99_ms, round(max(sent_ns - scheduled_ns) / 1e6, 3) AS send_lag_max_ms
   FROM requests WHERE sent_ns IS NOT NULL AND NOT coalesce(warmup, false) GROUP BY execution_id ORDER BY execution_id`;

const lag = { sql: sendLagSql, shows: 'how late the requests of each load were sent' };
const counts = { sql: requestCountsSql, shows: 'requests of each load by outcome' };
const cached = { sql: cachedTokensSql, shows: 'cached prompt tokens of each load' };

/** The query behind an issue, and what its rows show. */
const queries: Record<string, { sql: string; shows: string }> = {
  client_bound: lag,
  all_failed: counts,
  requests_failed: counts,
  requests_cancelled: counts,
  output_shorter: counts,
  output_longer: counts,
  prefix_cache_carry_over: cached,
  seed_repeated: cached,
};

export function servingIssueQuery(code: IssueCode): { sql: string; shows: string } {
  const query = queries[code];
  if (query === undefined) throw new Error(`the issue ${code} has no evidence query`);
  return query;
}
