import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import { embeddedServer } from '../../model/server-metrics.js';

/** Engines by the prefix of the metrics they serve. */
const servers: Readonly<Record<string, string>> = {
  vLLM: 'vllm',
  SGLang: 'sglang',
  TGI: 'tgi',
  'llama.cpp': 'llama.cpp',
  [embeddedServer]: 'inferscope',
};

/** The engine's name. Behind a URL the server's metrics name it; `openai` is only the client. */
export function engineType(
  workload: Pick<Workload, 'engine'> | null,
  { where, engine }: Pick<MemoryPlan, 'where' | 'engine'>,
): string {
  return where === 'url' ? (servers[workload?.engine.name ?? ''] ?? engine) : engine;
}
