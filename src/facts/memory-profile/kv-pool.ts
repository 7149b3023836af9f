import type { MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import type { SessionDatabase } from '../../session/query.js';

/** The KV pool that an engine reserves, and its peak use. */
export interface KvPool {
  tokens: number | null;
  /** Null if the server does not report it. */
  bytes: number | null;
  /** Peak use as a share of `tokens`. */
  used_share: number | null;
  /** Requests of `tokens` tokens that fit at the same time. */
  max_concurrency: { tokens: number; requests: number } | null;
  source: string;
}

/** From the engine's log, else from its metrics. Null if neither reports a pool. */
export async function readKvPool(
  database: SessionDatabase,
  { execution_id, where }: Pick<MemoryPlan, 'execution_id' | 'where'>,
  log: VllmLogFacts | null,
): Promise<KvPool | null> {
  const rows = await database.query<{ metric: string; value: number }>(
    `SELECT metric, max(value) AS value FROM telemetry
     WHERE execution_id = $1 AND metric IN ('kv_cache_usage_ratio', 'kv_cache_total_tokens', 'kv_cache_total_bytes', 'kv_cache_used_tokens')
     GROUP BY metric`,
    [execution_id],
  );
  const recorded = (metric: string) => rows.find((row) => row.metric === metric)?.value ?? null;
  const total = recorded('kv_cache_total_tokens');
  const used = recorded('kv_cache_used_tokens');
  const blocks = log?.kv_cache_blocks?.value ?? null;
  const loggedTokens =
    log?.kv_cache_tokens?.value ?? (blocks === null ? null : blocks * (log?.block_size?.value ?? 16));
  const tokens = loggedTokens ?? total;
  const share = recorded('kv_cache_usage_ratio') ?? (used !== null && total ? used / total : null);
  if (tokens === null && share === null) return null;
  return {
    tokens,
    bytes: recorded('kv_cache_total_bytes'),
    used_share: share,
    max_concurrency: log?.max_concurrency?.value ?? null,
    source: loggedTokens !== null ? 'log' : where === 'url' ? '/metrics' : 'the engine',
  };
}
