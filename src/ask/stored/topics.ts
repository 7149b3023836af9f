import { benchAnswers, measuredGrowth, requestsAsked } from './answer-bench.js';
import { boundStage, gpuUtilized, turningBatch, utilization } from './answer-bound.js';
import { whatChanged } from './answer-changed.js';
import { copies } from './answer-copies.js';
import { whatFits } from './answer-fits.js';
import { collectivesAsked } from './answer-collectives.js';
import { costVerdict } from './answer-cost.js';
import { healthOf } from './answer-health.js';
import { idleTime, launchCounts } from './answer-idle.js';
import {
  attentionKind,
  boundKernels,
  classesAsked,
  counterOf,
  longestKernels,
  shareOfClass,
} from './answer-kernels.js';
import { sampledMetric, whatRan } from './answer-machine.js';
import { memoryUsed } from './answer-memory.js';
import { ruleAnswer, type RuleTopic, ruleTopics } from './answer-rules.js';
import {
  howSure,
  profilerAdds,
  timeOfStage,
  tokensPerSecond,
  whatNext,
  whatToChange,
  whySlow,
} from './answer-time.js';
import { predicted } from './answer-what-if.js';
import type { AskedQuestion } from './asked-question.js';
import type { Concept } from './concepts.js';
import { type AskedWorkload, changesAsked } from './changes-asked.js';
import { cannot, capture, type StoredFacts, type TopicAnswer } from './stored-facts.js';

/** What a question is about, and what answers it. */
export interface Topic {
  id: string;
  /** What it can be asked, for those whose question nobody understood; null where others show it better. */
  example: string | null;
  asks(question: AskedQuestion, workload: AskedWorkload): boolean;
  /** null: nothing of it is in this session, a later topic may know. */
  answer(facts: StoredFacts, workload: AskedWorkload): Promise<TopicAnswer | null> | TopicAnswer | null;
}

const by =
  (pattern: RegExp) =>
  ({ text }: AskedQuestion): boolean =>
    pattern.test(text);

/** All of them, or one of those that stand together. */
const says = ({ says: own }: AskedQuestion, ...wanted: readonly (Concept | readonly Concept[])[]): boolean =>
  wanted.every((one) => (typeof one === 'string' ? own.has(one) : one.some((each) => own.has(each))));
const saysNone = ({ says: own }: AskedQuestion, ...unwanted: readonly Concept[]): boolean =>
  unwanted.every((one) => !own.has(one));

/** Costs of a step that a verdict weighs against each other: the host, the kernels, the allocator. */
const costsNamed = (question: AskedQuestion): number =>
  [says(question, 'host'), says(question, ['kernel', 'device']), says(question, 'allocation')].filter(Boolean)
    .length;

const shareWords = /\b(?:share|percent\w*|how (?:much|large|big)|fraction|proportion|portion|part of)\b/i;

/** What knows more than the rules; null where the session has nothing of it. */
const before: Readonly<Record<string, Topic['answer']>> = {
  profiler: profilerAdds,
  communication: collectivesAsked,
  stragglers: collectivesAsked,
};

const answeredFirst = async (facts: StoredFacts, topic: RuleTopic, workload: AskedWorkload) =>
  (await before[topic.id]?.(facts, workload)) ?? ruleAnswer(facts, topic);

/** In the order in which they are tried: a question for a prediction before its subject, the particular before the general. */
export const topics: readonly Topic[] = [
  {
    id: 'fits',
    example: 'does it fit on an A100?',
    asks: by(
      /\bfits?\b|\bout of memory\b|\boom\b|\bhow (?:many|large|big) (?:a |is the |can the )?(?:batch\w*|sequences|requests|prompts)\b.*\b(?:can|could|hold|go|get|be)\b|\b(?:largest|maximum|max|biggest) (?:possible )?(?:batch|context|prompt|sequence)\b|\broom for\b|\benough (?:memory|vram)\b/i,
    ),
    answer: whatFits,
  },
  {
    id: 'changed',
    example: 'what changed since yesterday?',
    asks: by(
      /\b(?:what|anything)\b.{0,20}\b(?:changed|differ\w*|regress\w*)\b|\bsince (?:yesterday|last|the last|v?\d)|\byesterday\b|\b(?:last|previous|earlier) (?:run|session|time|week)\b|\b(?:slower|faster|better|worse) than (?:before|yesterday|the|last|it was|b\d)|\bregress\w*|\bcompared? (?:to|with) (?:yesterday|before|the|last|v?\d)/i,
    ),
    answer: whatChanged,
  },
  {
    id: 'verdict',
    example: 'is CPU scheduling, kernels or allocation the cost?',
    asks: (question) =>
      costsNamed(question) > 1 &&
      says(question, 'choice') &&
      saysNone(question, 'copy', 'idle', 'bound', 'elsewhere'),
    answer: costVerdict,
  },
  {
    id: 'turning_batch',
    example: null,
    asks: by(
      /\b(?:which|what) batch\b.*\b(?:compute|memory|turn\w*|bound|saturat\w*)\b|\bbatch\b.*\bbecomes?\b/i,
    ),
    answer: async (facts) => (await benchAnswers(facts)) ?? turningBatch(facts),
  },
  {
    id: 'measured_growth',
    example: null,
    asks: (question) =>
      /\b(?:twice|double|doubling)\b.*\b(?:prompt|output|input)\b.*\bcosts?\b|\b(?:prompt|input|output) (?:len\w*|tokens?)\b.*\bcompare\w*|\bcompare\w*\b.*\b(?:prompt|input|output) (?:len\w*|tokens?)\b|\bbatch\w*\b.*\butili[sz]\w*|\butili[sz]\w*\b.*\bbatch\w*/i.test(
        question.text,
      ) ||
      says(question, ['prompt', 'output'], 'length', 'effect') ||
      (says(question, 'batch', 'growth') &&
        (says(question, ['utilization', 'full']) || says(question, 'use', 'device'))),
    answer: measuredGrowth,
  },
  {
    id: 'what_if',
    example: 'what if the batch were 32?',
    asks: ({ text }, workload) => changesAsked(text, workload) !== null,
    answer: (facts, workload) => predicted(facts, changesAsked(facts.question.text, workload)!),
  },
  {
    id: 'next_capture',
    example: null,
    asks: by(
      /\b(?:capture|measure|record|profile|look at|investigate)\b.{0,12}\bnext\b|\bnext (?:step|capture|measurement)\b|\bwhat (?:else )?should (?:i|we) (?:capture|measure|profile)\b/i,
    ),
    answer: whatNext,
  },
  {
    id: 'change',
    example: 'what should be changed first?',
    asks: by(
      /\b(?:should|can|could|must|to) (?:i|we|be)? ?(?:chang\w*|fix\w*|improv\w*|optimi[sz]\w*|do first)\b|\bhow (?:do|can|could|to)\b.{0,16}\b(?:faster|improve|speed|optimi[sz]\w*|reduce|fix)\b|\b(?:recommend\w*|advice|low[- ]hanging|biggest win|best (?:fix|change)|findings?)\b|\b(?:what|where|which)\b.{0,24}\b(?:bottlenecks?|problems?|issues?|wrong)\b|\bchange first\b/i,
    ),
    answer: whatToChange,
  },
  {
    id: 'health',
    example: 'are there warnings about this run?',
    asks: (question) => says(question, 'health'),
    answer: healthOf,
  },
  {
    id: 'bound_kernels',
    example: 'which kernel is memory-bound?',
    asks: (question) =>
      says(question, 'kernel', ['memory', 'compute', 'latency'], 'bound') && saysNone(question, 'launch'),
    answer: boundKernels,
  },
  {
    id: 'bound',
    example: 'is decode memory-bound or compute-bound?',
    asks: (question) =>
      /\b(?:memory|compute|bandwidth)[- ]?(?:bound|limited)\b|\bwhat (?:bounds|limits)\b(?!.*\boccupancy\b)|\barithmetic intensity\b/i.test(
        question.text,
      ) ||
      says(question, ['memory', 'compute'], 'bound') ||
      says(question, 'roof'),
    answer: boundStage,
  },
  {
    id: 'gpu_utilized',
    example: 'is the GPU fully utilized during generation?',
    asks: (question) =>
      /\b(?:gpu|device)\b.*\butili[sz]ed\b|\b(?:fully|well|badly|poorly) utili[sz]ed\b/i.test(
        question.text,
      ) ||
      (says(question, 'device', 'full') && saysNone(question, 'kernel', 'memory', 'elsewhere')),
    answer: gpuUtilized,
  },
  {
    id: 'collectives',
    example: null,
    asks: by(/\bbus ?(?:bandwidth|bw)\b|\ball-?gather\b|\breduce-?scatter\b|\b(?:late|last) rank\b/i),
    answer: collectivesAsked,
  },
  {
    id: 'utilization',
    example: 'what is the MFU of prefill?',
    asks: (question) =>
      /\b(?:mfu|mbu|roof\w*)\b|\bpeak (?:flop|band)\w*|\bhow (?:close|near|far)\b|\befficien\w*|\bbandwidth\b|\b[tg]?flops?\b|\b(?:gpu|hardware|compute) utili[sz]\w*|\bunder-?utili[sz]\w*/i.test(
        question.text,
      ) || says(question, 'peak', ['compute', 'bandwidth', 'use']),
    answer: async (facts) =>
      (await (/\bgpu utili/i.test(facts.question.text) ? sampledMetric(facts) : null)) ?? utilization(facts),
  },
  {
    id: 'counters',
    example: null,
    asks: by(
      /\btensor[- ]?(?:cores?|pipe)\b|\bl[12]\b.{0,8}\b(?:cache|hit\w*)|\boccupancy\b|\bstall\w* (?:reasons?|on|of)|\bwarp stalls?\b|\btensor pipe\b|\bregisters?\b|\bdram (?:throughput|use|util\w*)\b/i,
    ),
    answer: counterOf,
  },
  {
    id: 'launch_counts',
    example: 'how many kernels does a decode step launch?',
    asks: (question) =>
      /\bhow many\b.{0,24}\b(?:kernels?|launch\w*)\b|\b(?:launches|kernels) (?:per|a|for each|each|in a|in one)\b|\bnumber of (?:kernels?|launches)\b/i.test(
        question.text,
      ) || says(question, ['kernel', 'launch'], 'count', 'step'),
    answer: launchCounts,
  },
  {
    id: 'copies',
    example: 'how much is copied between host and device?',
    asks: by(
      /\bcop(?:y|ies|ied|ying)\b(?!.*\bcache\b)|\bh(?:to|2)d\b|\bd(?:to|2)h\b|\bmemcpy\b|\bpci-?e?\b|\btransfer\w*|\bpageable\b|\bpinned\b/i,
    ),
    answer: copies,
  },
  {
    id: 'idle',
    example: 'is the GPU idle between steps?',
    asks: (question) =>
      /\bidle\w*|\b(?:gpu|device)\b.{0,12}\b(?:wait\w*|starv\w*|busy|stall\w*)\b|\bwait\w*\b.{0,12}\bfor\b(?!.*\b(?:gpu|cpu|cores?)\b)|\bbubbles?\b|\bgaps?\b/i.test(
        question.text,
      ) || says(question, 'idle', ['device', 'step']),
    answer: idleTime,
  },
  {
    id: 'certainty',
    example: null,
    asks: by(
      /\bnois\w*|\bvarian\w*|\bvariab\w*|\breliab\w*|\btrust\w*|\brel(?:y|ied|ying) on\b|\bjitter\w*|\bsignifican\w*|\bconfiden\w*|\brepeatab\w*|\breproduc\w*|\bspread\b|\bhow (?:sure|certain|exact|accurate)\b|\benough (?:repeats|runs|samples)\b|\bstab(?:le|ility)\b|\bconsisten\w*/i,
    ),
    answer: howSure,
  },
  {
    id: 'class_share',
    example: 'how much of a decode step is attention?',
    asks: ({ text }) =>
      classesAsked(text).length > 1 || (classesAsked(text).length === 1 && shareWords.test(text)),
    answer: shareOfClass,
  },
  ...ruleTopics
    .filter(({ id }) => id !== 'host')
    .map((topic): Topic => ({
      id: topic.id,
      example: null,
      asks: (question) => topic.asks.test(question.text) || topic.means?.(question.says) === true,
      answer: (facts, workload) =>
        topic.id === 'attention_kind' ? attentionKind(facts, topic) : answeredFirst(facts, topic, workload),
    })),
  {
    id: 'class',
    example: null,
    asks: ({ text }) => classesAsked(text).length > 0 && !/\bwhich\b.*\bkernels?\b/i.test(text),
    answer: shareOfClass,
  },
  {
    id: 'kernels',
    example: 'which kernels take longest?',
    asks: by(
      /\bkernels?\b|\boperators?\b|\bops\b|\bslowest\b|\bhottest\b|\bhotspots?\b|\btriton\b|\bcutlass\b/i,
    ),
    answer: longestKernels,
  },
  {
    id: 'memory',
    example: 'what takes the memory?',
    asks: by(/\bmemory\b|\bgi?b\b|\bkv[- ]?cache\b|\bvram\b|\brss\b/i),
    answer: memoryUsed,
  },
  {
    id: 'sampled',
    example: null,
    asks: by(/\bpower\b|\bwatts?\b|\bclocks?\b|\bfrequenc\w*|\btemperature\b|\bhot\b|\butili[sz]ation\b/i),
    answer: sampledMetric,
  },
  ...ruleTopics
    .filter(({ id }) => id === 'host')
    .map((topic): Topic => ({
      id: topic.id,
      example: null,
      asks: by(topic.asks),
      answer: (facts) => ruleAnswer(facts, topic),
    })),
  {
    id: 'requests',
    example: 'from which batch size does throughput stop growing?',
    asks: by(
      /\bbatch\w*|\bknee\b|\bscal\w*|\bthroughput\b|\bp9\d\b|\bgoodput\b|\bslo\b|\bqueue\w*|\bsaturat\w*|\bregime\w*|\bprompt\b|\blatenc\w*|\bttft\b|\btpot\b|\bitl\b|\bcosts?\b/i,
    ),
    answer: requestsAsked,
  },
  {
    id: 'scaling',
    example: null,
    asks: by(/\bknee\b|\bscal(?:e|es|ing)\b|\b(?:stop\w*|plateau\w*) (?:growing|improving|scaling)?\b/i),
    answer: (facts) =>
      cannot(
        'How it scales is not known: the session measured one batch size.',
        capture.bench,
        turningBatch(facts)?.evidence ?? [],
      ),
  },
  {
    id: 'tokens_per_s',
    example: null,
    asks: by(/\btok(?:en)?s? ?(?:\/|per) ?s(?:ec\w*)?\b|\bthroughput\b|\bhow fast\b/i),
    answer: tokensPerSecond,
  },
  {
    id: 'what_ran',
    example: null,
    asks: by(
      /\b(?:which|what) (?:model|gpu|device|engine|dtype|batch|program|machine|hardware)\b|\bwhat (?:ran|is this|was (?:run|measured|profiled))\b/i,
    ),
    answer: whatRan,
  },
  {
    id: 'why_slow',
    example: 'why is decode slow?',
    asks: by(/\bwhy\b|\bslow\w*\b|\bhigh\b|\btakes? so long\b|\bexplain\b|\bcause\w*/i),
    answer: whySlow,
  },
  {
    id: 'time',
    example: 'where does the time of a decode step go?',
    asks: by(
      /\b(?:times?|long|duration|ms|latenc\w*|ttft|tpot|itl|fast|speed|prefill|decode|steps?|stages?|waterfall|where|load\w*|warm-?up)\b/i,
    ),
    answer: timeOfStage,
  },
];

/** Topics whose words the question has, the first to be tried first. */
export const topicsOf = (question: AskedQuestion, workload: AskedWorkload): Topic[] =>
  topics.filter((topic) => topic.asks(question, workload));
