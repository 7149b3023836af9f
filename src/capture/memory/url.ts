import process from 'node:process';
import { baseOf } from '../../engines/openai/find-server.js';
import type { Issue } from '../../model/document.js';
import type { EngineRequest } from '../../model/engine.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';
import { processTree } from '../process-tree.js';
import { isThisMachine, findListenerPid } from './url-listener.js';
import { kvCapacityTokens, metricsSource, readCacheConfig, startedWith } from './url-metrics.js';
import { fetchMetricsPage } from '../../model/metrics-page.js';
import { readServerIdentity } from './url-server.js';
import type { MemoryTarget, OpenTarget } from './memory-target.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** Arguments of the engine openai; the other arguments apply only to an engine that is started. */
const serverOptions = new Set(['tokenizer', 'api', 'timeout', 'metrics_url', 'extra_body']);

/**
 * Opens a running server: requests are sent as by `bench --engine openai`, its page /metrics is read, and this machine's GPUs are sampled
 * if the server runs here. Memory that it loaded before cannot be attributed.
 * @throws E_USAGE, E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_MODEL_NOT_FOUND
 */
export const openUrl: OpenTarget = async ({ request, url, loadEngine }): Promise<MemoryTarget> => {
  const engine = await loadEngine('openai');
  const prepared = await engine.prepare(requestOf(request, url!));
  const base = new URL(baseOf(url!, '--url'));
  const metricsUrl = request.engineArgs['metrics_url'] ?? `${base.origin}/metrics`;
  let page = (await fetchMetricsPage(metricsUrl))?.text ?? null;
  const config = page === null ? null : readCacheConfig(page);
  const isLocal = await isThisMachine(base.hostname);
  const port = Number(base.port || (base.protocol === 'https:' ? 443 : 80));
  const serverPid = isLocal ? findListenerPid(port) : null;
  const issues: Issue[] = [
    {
      code: 'server_decides',
      severity: 'info',
      text: `${base.origin} was already running: dtype, quantization, tensor parallelism and memory share are those of its start, not those given here, and the baseline already includes weights and KV cache.`,
    },
  ];
  const warn = (code: IssueCode, text: string) => issues.push({ code, severity: 'warning', text });
  if (!isLocal)
    warn(
      'server_elsewhere',
      `${base.hostname} is not this machine: memory of its GPUs is unknown, only /metrics is available.`,
    );
  if (isLocal && serverPid === null)
    warn(
      'server_process_unknown',
      `The process listening on port ${port} is not visible (another user or a container): GPU memory is that of the whole device, all processes included.`,
    );
  if (page === null) warn('metrics_absent', `${metricsUrl} does not respond: KV cache use is unknown.`);
  else if (kvCapacityTokens(config) === null)
    warn(
      'kv_capacity_unknown',
      `${metricsUrl} does not report the blocks of the KV cache (vllm:cache_config_info): its use is known only as a share.`,
    );
  const { engine: servedEngine } = prepared.workload;
  const identity = await readServerIdentity(base, String(servedEngine.options['model']), isLocal);
  const workload = {
    ...prepared.workload,
    engine: {
      ...servedEngine,
      version: identity.version ?? servedEngine.version,
      options: { ...servedEngine.options, ...startedWith(config) },
    },
    model:
      identity.config === null
        ? null
        : modelOf(String(servedEngine.options['model']), identity.config, request.dtype),
  };
  return {
    where: 'url',
    containerName: null,
    prepared: {
      ...prepared,
      workload,
      launch: (order, control) => ({ pid: serverPid, ended: prepared.launch(order, control).ended }),
    },
    gpus: null,
    samplesHere: isLocal,
    pids: () => (serverPid === null ? [] : processTree(serverPid)),
    sources:
      page === null ? [] : [metricsSource(metricsUrl, servedEngine.name, config, (text) => (page = text))],
    issues,
    async readLeftovers() {
      if (page === null) return [];
      const text = redactText(page, secretsOfEnvironment(process.env));
      return [{ kind: 'metrics', name: 'metrics.prom', text }];
    },
    close: async () => {},
  };
};

/** Dimensions from its config.json; its other start arguments are unknown. */
function modelOf(name: string, config: Record<string, unknown>, dtype: string | null) {
  const sizes = { num_parameters: null, weight_bytes: null };
  return { name, config, dtype: dtype ?? 'auto', quantization: null, weights: 'unknown' as const, ...sizes };
}

function requestOf({ model, engineArgs }: EngineRequest, url: string): EngineRequest {
  return {
    model,
    weights: null,
    dtype: null,
    device: null,
    threads: null,
    engineArgs: Object.fromEntries(Object.entries(engineArgs).filter(([key]) => serverOptions.has(key))),
    url,
    python: null,
  };
}
