import { changeOf, findingText, isOnStage, notFound } from './finding-parts.js';
import {
  lacksStage,
  notKnown,
  capture,
  partFrom,
  type StoredFacts,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { withoutEnd } from '../../vocabulary/sentence.js';

/** A topic answered by rules: their findings, or why there are none. */
export interface RuleTopic {
  rules: readonly string[];
  /** The capture with their data. */
  needs: string;
}

const severalGpus = 'inferscope run --evaluator none,nsys -- <command on several GPUs>';

export const ruleTopics = {
  launch_bound: { rules: ['launch_bound'], needs: capture.timeline },
  synchronization: { rules: ['synchronization_every_step', 'logits_to_host'], needs: capture.timeline },
  recompilation: { rules: ['recompilation'], needs: capture.timeline },
  fragmentation: { rules: ['allocator_fragmentation'], needs: capture.memory },
  allocator: { rules: ['allocator_churn', 'allocator_fragmentation'], needs: capture.timeline },
  kv_concat: { rules: ['kv_cache_concat'], needs: capture.timeline },
  no_cache: { rules: ['no_kv_cache'], needs: capture.operators },
  logits: { rules: ['prompt_logits', 'logits_to_host'], needs: capture.operators },
  rebuilt: { rules: ['rebuilt_tensors'], needs: capture.operators },
  casts: { rules: ['casts_and_layout_copies'], needs: capture.timeline },
  throttling: { rules: ['throttling'], needs: capture.monitor },
  another_process: { rules: ['another_process'], needs: capture.monitor },
  stragglers: { rules: ['rank_stragglers', 'expert_imbalance'], needs: severalGpus },
  communication: { rules: ['exposed_communication'], needs: severalGpus },
  streams: { rules: ['serialized_streams'], needs: capture.timeline },
  bank_conflicts: { rules: ['bank_conflicts'], needs: capture.counters },
  coalescing: { rules: ['uncoalesced_access'], needs: capture.counters },
  prefix_cache: { rules: ['prefix_cache_artifact'], needs: capture.serve },
  kv_pool: { rules: ['kv_pool_small'], needs: capture.serve },
  client: { rules: ['client_bound'], needs: capture.serve },
  between_requests: { rules: ['gpu_idle_between_requests'], needs: capture.timeline },
  cpu_by_accident: { rules: ['cpu_by_accident'], needs: capture.timeline },
  attention_kind: { rules: ['eager_attention'], needs: capture.timeline },
  precision: { rules: ['half_precision'], needs: capture.timeline },
  gemm_shape: { rules: ['gemm_shape'], needs: capture.timeline },
  fusion: { rules: ['elementwise_norm_overhead'], needs: capture.timeline },
  profiler: { rules: ['profiler_overhead'], needs: capture.timeline },
  host: { rules: ['host_bound', 'launch_bound'], needs: capture.timeline },
} satisfies Record<string, RuleTopic>;

/** For an answer that follows the one to the question: it starts with neither yes nor no. */
export const withoutYesNo = (facts: StoredFacts): StoredFacts => ({
  ...facts,
  question: { ...facts.question, isYesNo: false },
});

/** Yes with the finding, no with the rule's reason, or unknown. */
export function ruleAnswer(facts: StoredFacts, { rules: ids, needs }: RuleTopic): TopicAnswer {
  const { explained, question } = facts;
  const found = explained.findings.filter(({ rule, stage }) => ids.includes(rule) && isOnStage(facts, stage));
  // "Is it used well?", "do copies overlap?", "are norms fused?": a finding does not mean yes.
  const isProblemQuestion =
    question.isYesNo &&
    !/\b(?:well|fine|ok|good|used|fused|hid\w*|overlap\w*|concurrent\w*)\b/i.test(question.text);
  const outcomes = explained.rules.filter(({ rule }) => ids.includes(rule));
  if (found.length > 0) {
    const [fired, ...rest] = found;
    const direct = findingText(fired!);
    const yes = isProblemQuestion ? 'Yes: ' : '';
    return known({ ...direct, text: `${yes}${direct.text}` }, [
      changeOf(fired!),
      ...rest.slice(0, 2).map(findingText),
    ]);
  }
  const lacking = explained.stages.length > 0 ? lacksStage(facts) : null;
  if (lacking) return lacking;
  const first = outcomes.find(({ outcome }) => outcome === 'not_fired');
  if (first) {
    const no = isProblemQuestion ? 'No. ' : '';
    return known(partFrom('findings', `${no}${notFound(first)}`, 0));
  }
  const elsewhere = outcomes.find(({ outcome }) => outcome === 'fired');
  if (elsewhere)
    return known(partFrom('findings', `${elsewhere.title}: not in the stage of the question.`, 0));
  const why = outcomes[0]
    ? `${outcomes[0].title}: not known. ${withoutEnd(outcomes[0].why)}.`
    : 'No rule covers that.';
  return notKnown(why, needs);
}
