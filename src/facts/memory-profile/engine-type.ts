import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';

/** Servers that name their metrics, as their projects are called. */
const servers: Readonly<Record<string, string>> = {
  vLLM: 'vllm',
  SGLang: 'sglang',
  TGI: 'tgi',
  'llama.cpp': 'llama.cpp',
  'inferscope serve': 'inferscope',
};

/** Behind a URL the server is the engine, where its metrics tell which it is; `openai` is how it is asked. */
export function engineType(
  workload: Pick<Workload, 'engine'> | null,
  { where, engine }: Pick<MemoryPlan, 'where' | 'engine'>,
): string {
  return where === 'url' ? (servers[workload?.engine.name ?? ''] ?? engine) : engine;
}
