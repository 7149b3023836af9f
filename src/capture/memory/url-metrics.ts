import type { Issue } from '../../model/document.js';
import { readServerMetrics } from '../../model/server-metrics.js';
import { sampleMetrics } from '../../model/metrics-page.js';
import type { Row } from '../../model/tables.js';
import { monotonicNs } from '../../model/clock.js';
import { plural } from '../../vocabulary/format.js';
import type { MemorySource } from './memory-target.js';

/** The KV cache configuration of a server, from vllm:cache_config_info. */
interface CacheConfig {
  blocks: number | null;
  block_size: number | null;
  /** Reported since 2026; for hybrid models less than blocks × block size. */
  tokens: number | null;
  /** If set explicitly (--kv-cache-memory-bytes; on a CPU VLLM_CPU_KVCACHE_SPACE). */
  bytes: number | null;
  gpu_memory_utilization: number | null;
  /** auto is the model's own dtype. */
  cache_dtype: string | null;
}

/**
 * Reads `vllm:cache_config_info{block_size="16",num_gpu_blocks="27392",…} 1.0`. Data-parallel engines have one line each: blocks are
 * summed. Null if the page has no such line.
 */
export function readCacheConfig(page: string): CacheConfig | null {
  const lines = page.split('\n').filter((line) => line.startsWith('vllm:cache_config_info{'));
  if (lines.length === 0) return null;
  const label = (line: string, name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1];
  const number = (text: string | undefined) =>
    text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
  const sumOf = (name: string) => {
    const values = lines.map((line) => number(label(line, name)));
    return values.every((value) => value !== null) ? values.reduce((sum, value) => sum + value, 0) : null;
  };
  const [first] = lines;
  return {
    blocks: sumOf('num_gpu_blocks'),
    tokens: sumOf('kv_cache_size_tokens'),
    bytes: sumOf('kv_cache_memory_bytes'),
    block_size: number(label(first!, 'block_size')),
    gpu_memory_utilization: number(label(first!, 'gpu_memory_utilization')),
    cache_dtype: label(first!, 'cache_dtype') ?? null,
  };
}

/** Tokens that fit in the KV cache; null if the page has neither tokens nor blocks (num_gpu_blocks="None"). */
export function kvCapacityTokens(config: CacheConfig | null): number | null {
  if (config === null || config.tokens !== null) return config?.tokens ?? null;
  return config.blocks === null || config.block_size === null ? null : config.blocks * config.block_size;
}

/** Start arguments from the server's page, by vLLM's names. */
export function startedWith(config: CacheConfig | null): Record<string, string> {
  const reported = {
    gpu_memory_utilization: config?.gpu_memory_utilization ?? null,
    kv_cache_dtype: config?.cache_dtype ?? null,
    block_size: config?.block_size ?? null,
  };
  return Object.fromEntries(
    Object.entries(reported).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
  );
}

/**
 * KV cache use, from before the requests until after them. Rows of telemetry, scope server:
 * kv_cache_total_tokens and kv_cache_total_bytes (once), kv_cache_used_tokens, preemptions_total. Without the metric or the capacity there is no row: absent
 * is not 0 %.
 */
export function metricsSource(
  url: string,
  server: string,
  config: CacheConfig | null,
  savePage: (page: string) => void,
): MemorySource {
  const capacity = kvCapacityTokens(config);
  return {
    name: 'metrics',
    tool: { name: `${server} /metrics`, version: null },
    start(keys) {
      const telemetry: Row<'telemetry'>[] = [];
      let missed = 0;
      const put = (t_ns: number, metric: string, value: number) =>
        telemetry.push({ ...keys, pid: null, rank: 0, t_ns, scope: 'server', metric, value });
      if (capacity !== null) put(monotonicNs(), 'kv_cache_total_tokens', capacity);
      if (config !== null && config.bytes !== null) put(monotonicNs(), 'kv_cache_total_bytes', config.bytes);
      const sampling = sampleMetrics(url, (page) => {
        if (page === null) {
          missed++;
          return;
        }
        const { reading } = readServerMetrics(page.text);
        const used = reading['kv_cache_usage_ratio'];
        if (used !== undefined && capacity !== null) put(page.t_ns, 'kv_cache_used_tokens', used * capacity);
        if (reading['preemptions_total'] !== undefined)
          put(page.t_ns, 'preemptions_total', reading['preemptions_total']);
        savePage(page.text);
      });
      return {
        async stop() {
          await sampling.stop();
          const text = `${url} did not respond to ${plural(missed, 'request')}.`;
          const issues: Issue[] =
            missed === 0 ? [] : [{ code: 'metrics_missed', severity: 'warning', text, count: missed }];
          return { memory: [], telemetry, issues };
        },
      };
    },
  };
}
