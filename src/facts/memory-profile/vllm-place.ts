import type { VllmLogBytes, VllmLogFacts, VllmRankFacts } from '../../model/vllm-log.js';
import type { Part, Place } from './part.js';

/**
 * A GPU of vLLM from its log: weights loaded, memory of its profiling run, and the KV pool. Ranks take the run's GPUs
 * in order.
 */
export function vllmPlace({ ranks }: VllmLogFacts, gpuIndex: number, gpu: number): Place {
  const rank = ranks.find((vllmRankFacts) => vllmRankFacts.rank === gpuIndex) ?? ranks[0];
  return { gpu, parts: rank ? partsOf(rank) : [], peakStage: null };
}

function partsOf(rank: VllmRankFacts): Part[] {
  const parts: Part[] = [];
  const addPart = (
    component: Part['component'],
    fact: VllmLogBytes | null,
    confidence: Part['confidence'],
  ) => {
    if (fact) parts.push({ component, bytes: fact.value, confidence, evidence: `log: ${fact.line.trim()}` });
  };
  addPart('model_weights', rank.weights, 'high');
  addPart('kv_cache', rank.kv_cache, 'high');
  const peak = rank.activation_peak;
  if (peak) {
    const graphs = rank.activation_includes_graphs ? (rank.cuda_graphs_estimate?.value ?? 0) : 0;
    parts.push({
      component: 'activations',
      bytes: peak.value - graphs,
      confidence: 'medium',
      evidence: `log: ${peak.line.trim()}${graphs > 0 ? ' (less its estimate for graphs)' : ''}: reserved after a run at its largest batch`,
    });
  }
  addPart('framework_overhead', rank.non_torch, 'medium');
  addPart('cuda_graphs', rank.cuda_graphs, 'medium');
  return parts;
}
