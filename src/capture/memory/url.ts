import process from 'node:process';
import { baseOf } from '../../engines/openai/find-server.js';
import type { Issue } from '../../model/document.js';
import type { EngineRequest } from '../../model/engine.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';
import { processTree } from '../process-tree.js';
import { isThisMachine, listenerPid } from './url-listener.js';
import { metricsPage, metricsSource, readCacheConfig, startedWith } from './url-metrics.js';
import { serverSelf } from './url-server.js';
import type { MemoryTarget, OpenTarget } from './where.js';

/** Arguments of the engine openai; the others are of an engine that is started, and this one runs already. */
const ofServers = new Set(['tokenizer', 'api', 'timeout', 'metrics_url', 'extra_body']);

/**
 * A server that runs already: its requests are sent as `bench --engine openai` sends them, its page /metrics is read, and
 * this machine's GPUs are sampled where the server is on it. What it loaded before cannot be seen apart.
 * @throws E_USAGE, E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_MODEL_NOT_FOUND
 */
export const openUrl: OpenTarget = async ({ request, url, loadEngine }): Promise<MemoryTarget> => {
  const engine = await loadEngine('openai');
  const prepared = await engine.prepare(requestOf(request, url!));
  const base = new URL(baseOf(url!, '--url'));
  const metricsUrl = request.engineArgs['metrics_url'] ?? `${base.origin}/metrics`;
  let page = await metricsPage(metricsUrl);
  const config = page === null ? null : readCacheConfig(page);
  const here = await isThisMachine(base.hostname);
  const port = Number(base.port || (base.protocol === 'https:' ? 443 : 80));
  const root = here ? listenerPid(port) : null;
  const issues: Issue[] = [
    {
      code: 'server_decides',
      severity: 'info',
      text: `${base.origin} was started before: dtype, quantization, tensor parallelism and its share of memory are as it was started, not as typed here, and its baseline already holds weights and KV cache.`,
    },
  ];
  const warn = (code: string, text: string) => issues.push({ code, severity: 'warning', text });
  if (!here)
    warn(
      'server_elsewhere',
      `${base.hostname} is not this machine: memory of its GPUs is not known, only what /metrics tells.`,
    );
  if (here && root === null)
    warn(
      'server_process_unknown',
      `No process that listens on port ${port} is visible (another user's, or one in a container): memory of the GPUs is the device's, of all processes.`,
    );
  if (page === null)
    warn('metrics_absent', `${metricsUrl} does not answer: what of the KV cache is in use is not known.`);
  else if (config === null)
    warn(
      'kv_capacity_unknown',
      `${metricsUrl} does not tell the blocks of the KV cache (vllm:cache_config_info): it is known as a share only.`,
    );
  const { engine: served } = prepared.workload;
  const self = await serverSelf(base, String(served.options['model']), here);
  const workload = {
    ...prepared.workload,
    engine: {
      ...served,
      version: self.version ?? served.version,
      options: { ...served.options, ...startedWith(config) },
    },
    model: self.config === null ? null : modelOf(String(served.options['model']), self.config, request.dtype),
  };
  return {
    where: 'url',
    containerName: null,
    prepared: {
      ...prepared,
      workload,
      launch: (order, control) => ({ pid: root, ended: prepared.launch(order, control).ended }),
    },
    gpus: null,
    samplesHere: here,
    pids: () => (root === null ? [] : processTree(root)),
    sources: page === null ? [] : [metricsSource(metricsUrl, served.name, config, (text) => (page = text))],
    issues,
    async leftBehind() {
      if (page === null) return [];
      const text = redactText(page, secretsOfEnvironment(process.env));
      return [{ kind: 'metrics', name: 'metrics.prom', text }];
    },
    close: async () => {},
  };
};

/** Dimensions are those of its config.json; what it was started with beside is not known. */
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
    engineArgs: Object.fromEntries(Object.entries(engineArgs).filter(([key]) => ofServers.has(key))),
    url,
    python: null,
  };
}
