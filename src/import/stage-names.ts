import { libraryRange } from '../model/library-ranges.js';
import type { StageKind } from '../model/record.js';
import { type HookedStep, warmupSteps } from './hooked-steps.js';
import { stageNameRules, type StageNameRule } from './stage-name-rules.js';

/** Information from the name of a range about its stage; null if unknown. */
export interface StageName {
  kind: StageKind;
  iteration: number | null;
  step_index: number | null;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  warmup: boolean;
  /** Marked by the hooks of `inferscope run`: the first call with its sizes, a CUDA graph replay, or any other call; null: not marked by them. */
  hook: 'first' | 'hook' | 'graph' | null;
  /** Named by a library, not by the program: NCCL:ncclAllReduce. */
  library: boolean;
  /** Confidence in a step inferred from the sequence of kernels, 0 to 1; null for a marked range. */
  confidence: number | null;
}

type StageNameReader = (name: string) => StageName;

/**
 * Reads names of ranges by the user's rules, then the built-in ones; a name without a matching rule is a stage of kind other.
 */
export function stageNameReader(userRules: readonly StageNameRule[] = []): StageNameReader {
  const library = new RegExp(`^:?${libraryRange}`, 'i');
  const rules = [...userRules, ...stageNameRules].map((rule) => ({
    kind: rule.kind,
    // Anchored here, so that rules need no anchors. nsys's own tables prefix a colon (its domain).
    pattern: new RegExp(`^:?(?:${rule.pattern.source})$`, 'i'),
  }));
  return (name) => {
    for (const { pattern, kind } of rules) {
      const match = pattern.exec(name.trim());
      if (match) return { ...stageFields(kind, match.groups ?? {}), library: library.test(name.trim()) };
    }
    return stageFields('other', {});
  };
}

/** Reads the names of all ranges of a capture, because warm-up of hooked steps is known only from all of them. */
export function readStageNames(
  names: readonly { code: number; text: string }[],
  userRules: readonly StageNameRule[] | undefined,
): (code: number) => StageName {
  const read = stageNameReader(userRules);
  const labels = new Map(names.map(({ code, text }) => [code, read(text)]));
  for (const label of warmupSteps([...labels.values()].filter(isHooked))) label.warmup = true;
  const unnamed = read('');
  return (code) => labels.get(code) ?? unnamed;
}

const isHooked = (label: StageName): label is StageName & HookedStep => label.hook !== null;

function stageFields(ruleKind: StageKind, groups: Record<string, string | undefined>): StageName {
  const number = (key: string) => (groups[key] === undefined ? null : Number(groups[key]));
  const kind = (groups['kind']?.toLowerCase() as StageKind | undefined) ?? ruleKind;
  const iteration = number('iteration');
  const stage: StageName = {
    kind,
    iteration,
    step_index: number('step_index'),
    batch_size: number('batch_size'),
    new_tokens: number('new_tokens'),
    context_tokens_sum: number('context_tokens_sum'),
    // inferscope's own workloads number the repeats before the measured ones −1, −2, …
    warmup: kind === 'warmup' || (iteration !== null && iteration < 0),
    hook: (groups['hook'] as 'first' | 'hook' | 'graph' | undefined) ?? null,
    library: false,
    confidence: null,
  };
  const context = number('context_requests');
  const generation = number('generation_requests');
  return context === null || generation === null
    ? stage
    : { ...stage, ...readBatch(context, generation, groups) };
}

/**
 * A batch of requests in prefill and in decode. The first number of a group's counts is its new tokens, which are unknown without one; if it
 * is marked sq (vLLM 0.26), sk is the number of attended tokens. Other numbers (sums of squares, and of context in versions without the mark)
 * are ignored.
 */
function readBatch(
  context: number,
  generation: number,
  groups: Record<string, string | undefined>,
): Partial<StageName> {
  const tokens = (text: string, requests: number) =>
    requests === 0 ? 0 : Number.parseInt(text.replace(/^sq/i, ''), 10);
  const keys = (text: string, requests: number) =>
    requests === 0 ? 0 : Number(/^sq\d+sk(\d+)/i.exec(text)?.[1] ?? Number.NaN);
  const [contextCounts, generationCounts] = [
    groups['context_counts'] ?? '',
    groups['generation_counts'] ?? '',
  ];
  const newTokens = tokens(contextCounts, context) + tokens(generationCounts, generation);
  const attended = keys(contextCounts, context) + keys(generationCounts, generation);
  const kind = context > 0 && generation > 0 ? 'mixed' : context > 0 ? 'prefill' : 'decode';
  return {
    kind: context + generation === 0 ? 'other' : kind,
    batch_size: context + generation,
    new_tokens: Number.isNaN(newTokens) ? null : newTokens,
    context_tokens_sum: Number.isNaN(attended) ? null : attended,
  };
}
