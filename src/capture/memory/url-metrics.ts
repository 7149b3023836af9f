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
  /** Tokens that fit in the KV cache of each data-parallel engine, by its label `engine`. */
  engine_tokens: ReadonlyMap<string, number | null>;
}

const labelOf = (line: string, name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1];
/** Versions with a single engine write no label. */
const engineOf = (line: string): string => labelOf(line, 'engine') ?? '0';

/**
 * Reads `vllm:cache_config_info{block_size="16",num_gpu_blocks="27392",…} 1.0`. Data-parallel engines have one line each: blocks are
 * summed. Null if the page has no such line.
 */
export function readCacheConfig(page: string): CacheConfig | null {
  const lines = page.split('\n').filter((line) => line.startsWith('vllm:cache_config_info{'));
  if (lines.length === 0) return null;
  const number = (line: string, name: string) => {
    const text = labelOf(line, name);
    return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
  };
  const sumOf = (name: string) => sumOfKnown(lines.map((line) => number(line, name)));
  const tokensOf = (line: string) => {
    const [blocks, blockSize] = [number(line, 'num_gpu_blocks'), number(line, 'block_size')];
    return (
      number(line, 'kv_cache_size_tokens') ??
      (blocks === null || blockSize === null ? null : blocks * blockSize)
    );
  };
  const [first] = lines;
  return {
    blocks: sumOf('num_gpu_blocks'),
    tokens: sumOf('kv_cache_size_tokens'),
    bytes: sumOf('kv_cache_memory_bytes'),
    block_size: number(first!, 'block_size'),
    gpu_memory_utilization: number(first!, 'gpu_memory_utilization'),
    cache_dtype: labelOf(first!, 'cache_dtype') ?? null,
    engine_tokens: new Map(lines.map((line) => [engineOf(line), tokensOf(line)])),
  };
}

/** Null if one of the values is, or there are none. */
const sumOfKnown = (values: readonly (number | null)[]): number | null =>
  values.length > 0 && values.every((value) => value !== null)
    ? values.reduce((sum, value) => sum + value, 0)
    : null;

/** Tokens that fit in the KV caches of all engines; null if an engine has neither tokens nor blocks (num_gpu_blocks="None"). */
export const kvCapacityTokens = (config: CacheConfig | null): number | null =>
  config && sumOfKnown([...config.engine_tokens.values()]);

/** Tokens in the KV caches of all engines: each engine reports a share of its own cache. Null if a share or size is missing. */
export function kvUsedTokens(config: CacheConfig | null, page: string): number | null {
  if (config === null) return null;
  const shares = page.split('\n').flatMap((line) => {
    const value = /^vllm:(?:kv|gpu)_cache_usage_perc(?:\{.*\})?\s+(\S+)/.exec(line)?.[1];
    return value === undefined ? [] : [{ engine: engineOf(line), share: Number(value) }];
  });
  return sumOfKnown(
    shares.map(({ engine, share }) => {
      const tokens = config.engine_tokens.get(engine) ?? null;
      return tokens === null || !(share >= 0) ? null : share * tokens;
    }),
  );
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
        const used = kvUsedTokens(config, page.text);
        if (used !== null) put(page.t_ns, 'kv_cache_used_tokens', used);
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
