import { stepKindsSql } from '../../model/record.js';
import { makeKnownSizes, sizeColumns } from '../trace/known-sizes.js';
import type { TraceScope } from '../trace/scope.js';
import type { Step } from './steps.js';

/** Sizes of every step of a run, for steps without recorded sizes. */
export interface RunSizes {
  batch_size: number | null;
  input_len: number | null;
  /** Source of the sizes. */
  from: string;
}

type Sizes = Pick<Step, 'batch_size' | 'new_tokens' | 'context_tokens_sum'>;

/** Steps of a timeline by its windows, with their known sizes. */
export async function readTracedSteps(scope: TraceScope): Promise<Step[]> {
  await scope.need('windows');
  await makeKnownSizes(scope);
  return scope.database.query<Step>(
    `SELECT w.stage_id, 0 AS pid, w.kind, NULL AS point, w.iteration, w.step_index, (w.end_ns - w.start_ns)::DOUBLE AS wall_ns,
            ${sizeColumns}
     FROM windows w LEFT JOIN known_sizes k USING (stage_id)
     WHERE w.kind IN ${stepKindsSql} ORDER BY w.start_ns, w.stage_id`,
  );
}

/** A step with its sizes filled in. */
export type SizedStep = Step & {
  /** Source of the sizes, in words. */
  from: string;
  /** Whether a size comes from the run, and may not apply to this step. */
  assumed: boolean;
};

export function withSizes(step: Step, run: RunSizes): SizedStep {
  const sources = new Set<string>();
  const sizeOf = (key: keyof Sizes, otherwise: () => number | null): number | null => {
    if (step[key] !== null) return withSource(sources, step[key], step.sizes_from);
    const value = otherwise();
    return value === null ? null : withSource(sources, value, run.from);
  };
  const isPrefill = step.kind === 'prefill';
  const batch = sizeOf('batch_size', () => run.batch_size);
  const tokens = sizeOf('new_tokens', () =>
    batch === null || step.kind === 'mixed'
      ? null
      : !isPrefill
        ? batch
        : run.input_len === null
          ? null
          : batch * run.input_len,
  );
  const context = sizeOf('context_tokens_sum', () => {
    // The first pass over a prompt has an empty cache.
    if (isPrefill) return tokens;
    if (batch === null || run.input_len === null || step.step_index === null) return null;
    return batch * (run.input_len + step.step_index + 1);
  });
  return {
    ...step,
    batch_size: batch,
    new_tokens: tokens,
    context_tokens_sum: context,
    from: [...sources].join(', '),
    assumed: sources.has(run.from),
  };
}

function withSource<T>(sources: Set<string>, value: T, from: string | null): T {
  if (from) sources.add(from);
  return value;
}
