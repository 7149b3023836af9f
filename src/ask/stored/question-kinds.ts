import { benchAnswers, memoryComponents, utilizations } from './from-analyses.js';
import {
  barsOf,
  firstFindings,
  matchedFindings,
  rooflineShares,
  silentRules,
  stageTimes,
} from './from-findings.js';
import { copiesByKind, largestMemory, launchCalls, longestKernels } from './from-tables.js';
import type { StoredFacts, StoredPart } from './stored-part.js';

export interface QuestionKind {
  id: string;
  /** What it can be asked, for those whose question nobody understood. */
  example: string;
  asks: RegExp;
  answer(facts: StoredFacts): Promise<StoredPart[]> | StoredPart[];
}

/** Kinds of questions and what answers them, the most particular first. */
export const questionKinds: readonly QuestionKind[] = [
  {
    id: 'memory',
    example: 'what takes the memory?',
    asks: /\b(memory|gib|gb|oom|out of memory|kv[- ]?cache|vram|rss|allocat\w*|fragment\w*)\b(?!.{0,3}(bound|bandwidth))/i,
    answer: async (facts) => {
      const parts = await memoryComponents(facts);
      return parts.length > 0 ? parts : largestMemory(facts);
    },
  },
  {
    id: 'utilization',
    example: 'what is the MFU of prefill?',
    asks: /\b(mfu|mbu|utili[sz]\w*|roof\w*|peak (flop|band)\w*|how (close|near|far)|efficien\w*|compute[- ]bound|memory[- ]bound|bandwidth)\b/i,
    answer: async (facts) => [...(await utilizations(facts)), ...rooflineShares(facts)],
  },
  {
    id: 'copies',
    example: 'how much is copied between host and device?',
    asks: /\b(cop(y|ies|ied|ying)|h(to|2)d|d(to|2)h|memcpy|pci-?e?|transfer\w*|pageable|pinned)\b/i,
    answer: async (facts) => [
      ...barsOf(facts, ['exposed_copy', 'nonessential.copy']),
      ...(await copiesByKind(facts)),
    ],
  },
  {
    id: 'communication',
    example: 'how much communication is exposed?',
    asks: /\b(communicat\w*|nccl|all-?reduce|collective\w*|nvlink|tensor parallel\w*|straggl\w*)\b/i,
    answer: (facts) => barsOf(facts, ['exposed_comm']),
  },
  {
    id: 'launches',
    example: 'is decode launch-bound?',
    asks: /\b(launch\w*|cuda ?graphs?|graph replay)\b/i,
    answer: async (facts) => [...barsOf(facts, ['launch']), ...(await launchCalls(facts))],
  },
  {
    id: 'idle',
    example: 'why is the GPU idle?',
    asks: /\b(idle\w*|wait\w*|gaps?|bubbles?|stall\w*|sync\w*|host|cpu|python|tokeni[sz]er|overhead)\b/i,
    answer: (facts) =>
      barsOf(facts, ['host', 'synchronization', 'launch', 'device_dependency', 'unattributed', 'serial']),
  },
  {
    id: 'kernels',
    example: 'which kernels take longest?',
    asks: /\b(kernels?|operators?|ops|gemms?|mat ?muls?|attention|softmax|norms?|elementwise|slowest|hottest|triton|cutlass|flash)\b/i,
    answer: longestKernels,
  },
  {
    id: 'bench',
    example: 'from which batch size does throughput stop growing?',
    asks: /\b(batch\w*|knee|scal\w*|throughput|tokens?|variance|varian\w*|prompt|output|regime\w*|latency|ttft|tpot|itl)\b/i,
    answer: benchAnswers,
  },
  {
    id: 'change',
    example: 'what should be changed first?',
    asks: /\b(change|fix|improve|faster|speed ?up|optimi[sz]\w*|recommend\w*|advice|next|findings?|problems?|wrong|bottlenecks?|issues?)\b/i,
    answer: (facts) => firstFindings(facts),
  },
  {
    id: 'time',
    example: 'where does the time of a decode step go?',
    asks: /\b(times?|slow\w*|long|duration|ms|latency|ttft|tpot|fast|speed|prefill|decode|steps?|stages?|waterfall|where)\b/i,
    answer: (facts) => [...stageTimes(facts), ...firstFindings(facts, 1)],
  },
];

const quantity = /\bhow (much|many|large|big|long|often)\b/i;

/** Findings that the question's words name, whatever its kind; else rules of that name that found nothing, or could not look. */
export function byWords(facts: StoredFacts): StoredPart[] {
  const found = matchedFindings(facts);
  // "How much memory does the KV cache take?" is not answered by "no KV cache is copied".
  return found.length > 0 || quantity.test(facts.question.text) ? found : silentRules(facts);
}
