import type { StageKind } from '../model/record.js';

/** A step recorded by the hooks of `inferscope run`, as a range or as a line of a record. */
export interface HookedStep {
  kind: StageKind;
  iteration: number | null;
  step_index: number | null;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  /** The first call with its sizes, the replay of a CUDA graph, or any other call. */
  hook: 'first' | 'hook' | 'graph';
}

/**
 * The warm-up steps: calls before the first replay of a CUDA graph of their sizes; first calls with their sizes if other
 * calls repeat these; the first call of several of a kind; and the first iteration with a context length that a
 * later iteration repeats, because libraries plan and allocators grow once per context length. The last rule applies only
 * while at least half of the kind's steps remain. Sizes that a program has only once (prompts of different lengths) are
 * steps: what their first call costs recurs with every new length.
 */
export function warmupSteps<Step extends HookedStep>(steps: readonly Step[]): Set<Step> {
  const replayed = firstReplays(steps);
  const repeated = steps.filter(({ hook }) => hook !== 'first');
  const kinds = [...new Set(steps.map(({ kind }) => kind))];
  const repeatedSizes = new Set(repeated.map(sizesKey));
  const earliest = new Set(
    kinds.flatMap((kind) => {
      const calls = steps.filter((step) => step.kind === kind);
      return calls.length === 1
        ? []
        : [calls.reduce((first, step) => (isBefore(step, first) ? step : first))];
    }),
  );
  const warmup = new Set(
    steps.filter((step) => {
      const replay = replayed.get(sizesKey(step));
      return (
        (replay !== undefined && isBefore(step, replay)) ||
        (step.hook === 'first' && (repeatedSizes.has(sizesKey(step)) || earliest.has(step)))
      );
    }),
  );
  for (const kind of kinds) {
    const kindSteps = steps.filter((step) => step.kind === kind && !warmup.has(step));
    const firstSteps = firstOfContext(kindSteps);
    const warmupCount = steps.filter((step) => step.kind === kind && warmup.has(step)).length;
    if (2 * (firstSteps.length + warmupCount) <= kindSteps.length + warmupCount)
      for (const step of firstSteps) warmup.add(step);
  }
  return warmup;
}

/** Steps of the earliest iteration with their sizes and context, if a later iteration has the same. */
function firstOfContext<Step extends HookedStep>(steps: readonly Step[]): Step[] {
  const alike = new Map<string, Step[]>();
  for (const step of steps) {
    if (step.context_tokens_sum === null || step.iteration === null) continue;
    const key = `${sizesKey(step)} ${step.context_tokens_sum}`;
    alike.set(key, [...(alike.get(key) ?? []), step]);
  }
  return [...alike.values()].flatMap((group) => {
    const iterations = group.map(({ iteration }) => iteration!);
    const first = Math.min(...iterations);
    return Math.max(...iterations) > first ? group.filter(({ iteration }) => iteration === first) : [];
  });
}

const sizesKey = ({ kind, batch_size, new_tokens }: HookedStep): string =>
  [kind, batch_size, new_tokens].join(' ');

/** The first CUDA graph replay per size: earlier calls of that size were warm-ups for its capture. */
function firstReplays<Step extends HookedStep>(steps: readonly Step[]): Map<string, Step> {
  const first = new Map<string, Step>();
  for (const step of steps.filter(({ hook }) => hook === 'graph')) {
    const earlier = first.get(sizesKey(step));
    if (earlier === undefined || isBefore(step, earlier)) first.set(sizesKey(step), step);
  }
  return first;
}

const isBefore = (step: HookedStep, otherStep: HookedStep): boolean =>
  step.iteration! < otherStep.iteration! ||
  (step.iteration === otherStep.iteration && step.step_index! < otherStep.step_index!);
