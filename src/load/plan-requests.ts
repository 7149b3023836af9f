import { arrivals } from './arrivals.js';
import { type LoadShape, type PlannedRequest } from './load-shape.js';
import { makePrompt, type PromptTokenizer } from './prompts.js';
import { seededRandom } from '../model/random.js';
import { partSeed } from './random.js';
import type { TracedRequest } from './trace-file.js';

interface RequestPlan {
  shape: LoadShape;
  /** Measured requests, without the warm-up. */
  requests: number;
  seconds: number;
  warmup: number;
  inputLen: number;
  outputLen: number;
  seed: number;
  /** Name of this load, so that no two loads of a run share a prompt. */
  part: string;
  tokenizer?: PromptTokenizer;
  /** Lengths of a trace, if it has them. */
  traced?: readonly TracedRequest[];
}

/** The requests of one load: due times, fresh prompts, lengths. Equal seed and part give equal requests. */
export function planRequests(plan: RequestPlan): PlannedRequest[] {
  const { shape, warmup, traced } = plan;
  const prompts = seededRandom(partSeed(plan.seed, `prompts ${plan.part}`));
  const total = plan.requests + warmup;
  const due = arrivals(
    shape,
    { requests: total, seconds: plan.seconds },
    seededRandom(partSeed(plan.seed, `arrivals ${plan.part}`)),
  );
  const count = due === null ? total : due.length;
  return Array.from({ length: count }, (_, index) => {
    const prompt = makePrompt(traced?.[index]?.input_tokens ?? plan.inputLen, prompts, plan.tokenizer);
    return {
      index,
      prompt: prompt.text,
      input_tokens: prompt.tokens,
      output_tokens: traced?.[index]?.output_tokens ?? plan.outputLen,
      warmup: index < Math.min(warmup, count - 1),
      due_ns: due === null ? null : Math.round(due[index]! * 1e9),
    };
  });
}
