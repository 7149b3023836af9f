import { rules } from '../../advice/findings/rules/index.js';
import { hasSubject } from '../../model/subjects.js';
import { benchAnswers, measuredGrowth } from './answer-bench.js';
import { boundStage, answerGpuUtilization, computeBoundBatch, utilization } from './answer-bound.js';
import { whatChanged } from './answer-changed.js';
import { copies } from './answer-copies.js';
import { whatFits } from './answer-fits.js';
import { answerCollectives } from './answer-collectives.js';
import { costVerdict } from './answer-cost.js';
import { gemmShapes } from './answer-gemms.js';
import { healthOf } from './answer-health.js';
import { graphsUsed } from './answer-graphs.js';
import { idleTime, launchCounts, withoutGpu } from './answer-idle.js';
import { measuredCases } from './answer-cases.js';
import { attentionKind, boundKernels, counterOf, longestKernels, shareOfClass } from './answer-kernels.js';
import { sampledMetric, whatRan } from './answer-machine.js';
import { findingText } from './finding-parts.js';
import { answerMemoryUse } from './answer-memory.js';
import { answerRequests, failedRequests, importedAnswers } from './answer-requests.js';
import { ruleAnswer, ruleTopics, type RuleTopic } from './answer-rules.js';
import {
  spreadOfTimes,
  profilerAdds,
  timeOfStage,
  tokensPerSecond,
  whatNext,
  whatToChange,
  whySlow,
} from './answer-time.js';
import { tokenCost } from './answer-token-cost.js';
import { answerPrediction } from './answer-what-if.js';
import type { ParsedQuestion } from './parsed-question.js';
import { type QuestionWorkload, requestedChanges } from './requested-changes.js';
import { PhraseIndex } from './phrase-index.js';
import { known, notKnown, capture, type StoredFacts, type TopicAnswer } from './stored-facts.js';
import { topicPhrases } from './topic-phrases.js';

/** Answers a question, or null if the session has no data for it: then the next topic is tried. */
type Answer = (
  facts: StoredFacts,
  workload: QuestionWorkload,
) => Promise<TopicAnswer | null> | TopicAnswer | null;

interface Topic {
  id: string;
  answer: Answer;
}

const byRules =
  (topic: RuleTopic): Answer =>
  (facts) =>
    ruleAnswer(facts, topic);

/** A rule judges timelines per step; without one, collectives are listed. */
function collectivesUnlessJudged(id: string) {
  return (facts: StoredFacts) =>
    facts.explained.rules.some(({ rule, outcome }) => rule === id && outcome !== 'not_applicable')
      ? null
      : answerCollectives(facts);
}

/** An amount of all of it, not only of what is exposed. */
const asksAmount =
  /^(?!.*\b(?:hid\w*|exposed|overlap\w*)\b).*\b(?:how (?:much|long)|share|percent\w*|fraction|part of)\b/is;

/** Topics that are not answered by rules alone; a topic that is also in answer-rules.ts is tried here first. */
const answers: Partial<Record<keyof typeof topicPhrases, Answer>> = {
  fits: whatFits,
  changed: whatChanged,
  verdict: costVerdict,
  turning_batch: async (facts) => (await benchAnswers(facts)) ?? computeBoundBatch(facts),
  measured_growth: measuredGrowth,
  next_capture: whatNext,
  change: whatToChange,
  health: healthOf,
  bound_kernels: boundKernels,
  bound: boundStage,
  gpu_utilized: answerGpuUtilization,
  collectives: answerCollectives,
  utilization: async (facts) =>
    (await (/\bgpu utili/i.test(facts.question.text) ? sampledMetric(facts) : null)) ?? utilization(facts),
  counters: counterOf,
  graphs_used: graphsUsed,
  launch_counts: launchCounts,
  copies,
  idle: idleTime,
  certainty: spreadOfTimes,
  class_share: shareOfClass,
  attention_kind: attentionKind,
  profiler: profilerAdds,
  // Findings are of single stages: an amount is answered from all of them.
  communication: async (facts) =>
    (asksAmount.test(facts.question.text) ? await shareOfClass(facts) : null) ??
    (await collectivesUnlessJudged('exposed_communication')(facts)),
  stragglers: async (facts) => {
    const listed = await collectivesUnlessJudged('rank_stragglers')(facts);
    const fired = (id: string) => facts.explained.findings.find(({ rule }) => rule === id);
    const waiting = fired('exposed_communication');
    if (listed !== null || ruleTopics.stragglers.rules.some(fired) || !waiting) return listed;
    // No rank computes longer, and yet others wait for one: both are said, the answer first.
    const { direct } = ruleAnswer(facts, ruleTopics.stragglers);
    return direct ? known(direct, [findingText(waiting)]) : known(findingText(waiting));
  },
  throttling: (facts) => (/\bcpu\b/i.test(facts.question.text) ? null : withoutGpu(facts, [])),
  kernels: longestKernels,
  gemm_shape: gemmShapes,
  memory: answerMemoryUse,
  sampled: sampledMetric,
  requests: answerRequests,
  failed_requests: failedRequests,
  scaling: async (facts) =>
    (await answerRequests(facts)) ??
    notKnown(
      'Scaling is not known: the session measured one batch size.',
      capture.bench,
      computeBoundBatch(facts)?.evidence ?? [],
    ),
  tokens_per_s: async (facts) =>
    (hasSubject(facts.session.manifest, 'load') ? await benchAnswers(facts) : await importedAnswers(facts)) ??
    tokensPerSecond(facts),
  token_cost: tokenCost,
  what_ran: whatRan,
  why_slow: whySlow,
  time: timeOfStage,
};

/** Topics that a session of `inferscope kernels` answers with its cases: true, by their distance from the roof. */
const byRoofOf: Readonly<Record<string, boolean>> = {
  kernels: false,
  gemm_shape: false,
  why_slow: false,
  bound_kernels: true,
  bound: true,
  utilization: true,
};

const topics: [Topic, phrases: string][] = [
  ...Object.entries(topicPhrases).map(([id, phrases]): [Topic, string] => {
    const topicAnswer = answers[id as keyof typeof topicPhrases];
    const ruleTopic: RuleTopic | undefined = (ruleTopics as Record<string, RuleTopic>)[id];
    const answer: Answer = async (facts, workload) =>
      (id in byRoofOf ? await measuredCases(facts, byRoofOf[id]!) : null) ??
      (await topicAnswer?.(facts, workload)) ??
      (ruleTopic ? ruleAnswer(facts, ruleTopic) : null);
    return [{ id, answer }, phrases];
  }),
  ...rules.flatMap(({ id, questions: asked }): [Topic, string][] =>
    asked ? [[{ id, answer: byRules({ rules: [id], needs: asked.needs }) }, asked.phrases]] : [],
  ),
];

const index = new PhraseIndex(topics.map(([topic, phrases]) => [topic, phrases.trim().split(/\s*\|\s*/)]));

/** Topics below this share of the best score share only a word with the question. */
const minScoreShare = 0.4;
/** Topics about what was measured, although their questions name changes: tried before any prediction. */
const beforePredictions = new Set(['changed', 'verdict', 'turning_batch', 'measured_growth']);
const hypothetical = /\b(?:what if|what happens|would|should|suppose|expect\w*|if (?:i|we|you))\b/i;

/** Topics that a question may be about, most likely first. */
export function topicsOf(question: ParsedQuestion, workload: QuestionWorkload): Topic[] {
  const found = index.find(question.text);
  const likelyTopics = found
    .filter(({ score }) => score >= minScoreShare * found[0]!.score)
    .map(({ owner }) => owner);
  const changes = requestedChanges(question.text, workload);
  const first = likelyTopics[0]?.id ?? '';
  if (changes === null || first === 'fits') return likelyTopics;
  if (beforePredictions.has(first) && !hypothetical.test(question.text)) return likelyTopics;
  return [{ id: 'what_if', answer: (facts) => answerPrediction(facts, changes) }, ...likelyTopics];
}

/** Example questions, shown if a question was not understood. */
export const exampleQuestions = [
  'does it fit on an A100?',
  'what changed since yesterday?',
  'is CPU scheduling, kernels or allocation the cost?',
  'what if the batch were 32?',
  'what should be changed first?',
  'are there warnings about this run?',
  'which kernel is memory-bound?',
  'is decode memory-bound or compute-bound?',
  'is the GPU fully utilized during generation?',
  'what is the MFU of prefill?',
  'how many kernels does a decode step launch?',
  'how much is copied between host and device?',
  'is the GPU idle between steps?',
  'how much of a decode step is attention?',
  'which kernels take longest?',
  'what takes the memory?',
  'from which batch size does throughput stop growing?',
  'what do a million tokens cost at 2.50 USD per hour?',
  'why is decode slow?',
  'where does the time of a decode step go?',
];
