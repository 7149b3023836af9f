import { rules } from '../../advice/findings/rules/index.js';
import { changeOf, findingTold, ofStage } from './finding-parts.js';
import type { Concept } from './concepts.js';
import { cannot, capture, partFrom, type StoredFacts, told, type TopicAnswer } from './stored-facts.js';
import { ended, withoutEnd } from './words.js';

/** A subject that rules judge: what they found, that they found nothing, or why they could not look. */
export interface RuleTopic {
  id: string;
  asks: RegExp;
  /** Asked by its concepts, in other words than these. */
  means?: (says: ReadonlySet<Concept>) => boolean;
  rules: readonly string[];
  /** The capture that lets them look. */
  needs: string;
}

/** The most particular first: what rules themselves say that they answer. */
export const ruleTopics: readonly RuleTopic[] = [
  ...rules.flatMap(({ id, asked }) =>
    asked ? [{ id, asks: asked.words, rules: [id], needs: asked.needs }] : [],
  ),
  {
    id: 'launch_bound',
    asks: /\blaunch(?:es)?[- ]?(?:bound|overhead|limited)\b|\bcuda[- ]?graphs?\b/i,
    rules: ['launch_bound'],
    needs: capture.timeline,
  },
  {
    id: 'synchronization',
    asks: /\bsync\w*|\.item\(\)|\.cpu\(\)|\bwaits? (?:for|on) the (?:gpu|device)\b/i,
    rules: ['synchronization_every_step', 'logits_to_host'],
    needs: capture.timeline,
  },
  {
    id: 'recompilation',
    asks: /\b(?:re)?compil(?:e|es|ed|ing|ations?)\b|\bdynamo\b|\binductor\b|\btriton autotun\w*/i,
    rules: ['recompilation'],
    needs: capture.timeline,
  },
  { id: 'fragmentation', asks: /\bfragment\w*/i, rules: ['allocator_fragmentation'], needs: capture.memory },
  {
    id: 'allocator',
    asks: /\ballocat(?:or|es?|ed|ing|ions?)\b|\bcuda_?(?:malloc|free)\b|\bmallocs?\b/i,
    rules: ['allocator_churn', 'allocator_fragmentation'],
    needs: capture.timeline,
  },
  {
    id: 'kv_concat',
    asks: /\bconcat\w*|\btorch\.cat\b|\bcache (?:is )?cop(?:y|ied|ies)\b|\bgrow\w* (?:the )?kv\b/i,
    rules: ['kv_cache_concat'],
    needs: capture.timeline,
  },
  {
    id: 'no_cache',
    asks: /\b(?:no|without|missing|unused) (?:a )?(?:kv[- ]?)?cache\b|\buse_cache\b|\brecomput\w*/i,
    rules: ['no_kv_cache'],
    needs: capture.operators,
  },
  {
    id: 'logits',
    asks: /\blogits\b|\blm_head\b/i,
    rules: ['prompt_logits', 'logits_to_host'],
    needs: capture.operators,
  },
  {
    id: 'rebuilt',
    asks: /\bmasks?\b|\b(?:made|built|created) (?:anew|again)\b/i,
    rules: ['rebuilt_tensors'],
    needs: capture.operators,
  },
  {
    id: 'casts',
    asks: /\bcast(?:s|ed|ing)?\b|\bdtype conver\w*|\blayout (?:cop\w*|chang\w*)|\btranspos\w*|\bcontiguous\b/i,
    rules: ['casts_and_layout_copies'],
    needs: capture.timeline,
  },
  {
    id: 'throttling',
    asks: /\bthrottl\w*|\bpower[- ]?(?:cap\w*|limit\w*)|\bclock (?:drop\w*|limit\w*)|\boverheat\w*/i,
    means: (says) => (says.has('clock') || says.has('heat')) && says.has('lowered'),
    rules: ['throttling'],
    needs: capture.monitor,
  },
  {
    id: 'another_process',
    asks: /\b(?:another|other|somebody|someone|shared?|else)\b.{0,20}\b(?:process\w*|gpu|using)\b/i,
    rules: ['another_process'],
    needs: capture.monitor,
  },
  {
    id: 'stragglers',
    asks: /\bstraggl\w*|\bslowest rank\b|\brank imbalance\b|\bimbalance\w*/i,
    rules: ['rank_stragglers'],
    needs: 'inferscope run --evaluator none,nsys -- <command on several GPUs>',
  },
  {
    id: 'communication',
    asks: /\bcommunicat\w*|\bnccl\b|\ball-?reduce\b|\bcollectives?\b|\bnvlink\b/i,
    rules: ['exposed_communication'],
    needs: 'inferscope run --evaluator none,nsys -- <command on several GPUs>',
  },
  {
    id: 'streams',
    asks: /\bstreams?\b|\bseriali[sz]\w*|\boverlap\w*|\bconcurrent kernels\b/i,
    rules: ['serialised_streams'],
    needs: capture.timeline,
  },
  {
    id: 'bank_conflicts',
    asks: /\bbank conflicts?\b|\bshared memory\b/i,
    rules: ['bank_conflicts'],
    needs: capture.counters,
  },
  {
    id: 'coalescing',
    asks: /\b(?:un)?coalesc\w*|\baccess patterns?\b|\bstrided\b|\bsectors?\b/i,
    rules: ['uncoalesced_access'],
    needs: capture.counters,
  },
  {
    id: 'prefix_cache',
    asks: /\bprefix[- ]?cach\w*|\bcache hits?\b/i,
    rules: ['prefix_cache_artefact'],
    needs: capture.serve,
  },
  {
    id: 'kv_pool',
    asks: /\bpreempt\w*|\bkv (?:pool|blocks?)\b|\bevict\w*|\bcache (?:is )?full\b/i,
    rules: ['kv_pool_small'],
    needs: capture.serve,
  },
  { id: 'client', asks: /\bclient\b|\bload generator\b/i, rules: ['client_bound'], needs: capture.serve },
  {
    id: 'between_requests',
    asks: /\bbetween requests\b/i,
    rules: ['gpu_idle_between_requests'],
    needs: capture.timeline,
  },
  {
    id: 'cpu_by_accident',
    asks: /\b(?:really|actually|even|accident\w*)\b.{0,25}\b(?:gpu|cpu|cuda)\b|\bon the cpu\b|\bfall(?:s|en|ing)? back\b/i,
    rules: ['cpu_by_accident'],
    needs: capture.timeline,
  },
  {
    id: 'attention_kind',
    asks: /\b(?:eager|flash|fused|unfused|sdpa|which|what)\b.{0,12}\battention\b|\battention implementation\b|\bflash[- ]?attn\b/i,
    rules: ['eager_attention'],
    needs: capture.timeline,
  },
  {
    id: 'precision',
    asks: /\b(?:fp32|float32|tf32|single precision|mixed precision|right dtype|precision)\b/i,
    rules: ['half_precision'],
    needs: capture.timeline,
  },
  {
    id: 'gemm_shape',
    asks: /\btensor cores?\b|\btiles?\b|\bwave quanti[sz]\w*|\b(?:mis)?align\w*|\bpad(?:ded|ding)\b|\bsplit-?k\b/i,
    rules: ['gemm_shape'],
    needs: capture.timeline,
  },
  {
    id: 'fusion',
    asks: /\b(?:un)?fus(?:e|ed|ion)\b|\belement[- ]?wise\b|\bsmall kernels\b/i,
    rules: ['elementwise_norm_overhead'],
    needs: capture.timeline,
  },
  {
    id: 'profiler',
    asks: /\bprofil(?:er|ing)\b.{0,30}\b(?:add\w*|overhead|cost\w*|distort\w*|slow\w*)|\b(?:overhead|cost) of (?:the )?(?:profil\w*|nsys)\b|\bobserver\b/i,
    rules: ['profiler_overhead'],
    needs: capture.timeline,
  },
  {
    id: 'host',
    asks: /\bhost\b|\bpython\b|\btokeni[sz]\w*|\bgil\b|\bcpu[- ]?bound\b|\bcpu (?:the )?(?:limit\w*|bottleneck)\b|\bdata ?loader\b|\bpre-?processing\b/i,
    rules: ['host_bound', 'launch_bound'],
    needs: capture.timeline,
  },
];

/** Yes with the finding, no with the rule's own reason, or that it cannot be told. */
export function ruleAnswer(facts: StoredFacts, { rules: ids, needs }: RuleTopic): TopicAnswer {
  const { explained, question } = facts;
  const found = explained.findings.filter(({ rule, stage }) => ids.includes(rule) && ofStage(facts, stage));
  const own = explained.rules.filter(({ rule }) => ids.includes(rule));
  if (found.length > 0) {
    const [fired, ...rest] = found;
    const direct = findingTold(fired!);
    const yes = question.isYesNo && !/\b(?:well|fine|ok|good|used)\b/i.test(question.text) ? 'Yes: ' : '';
    return told({ ...direct, text: `${yes}${direct.text}` }, [
      changeOf(fired!),
      ...rest.slice(0, 2).map(findingTold),
    ]);
  }
  const first = own.find(({ outcome }) => outcome === 'not_fired');
  if (first) {
    const no = question.isYesNo && !/\b(?:well|fine|ok|good|used)\b/i.test(question.text) ? 'No: ' : '';
    return told(partFrom('findings', `${no}${first.title}: not found; ${ended(withoutEnd(first.why))}`, 0));
  }
  const elsewhere = own.find(({ outcome }) => outcome === 'fired');
  if (elsewhere)
    return told(partFrom('findings', `${elsewhere.title}: not in the stage that is asked about.`, 0));
  const why = own[0] ? `${own[0].title}: not known; ${withoutEnd(own[0].why)}.` : 'No rule judges that.';
  return cannot(why, needs);
}
