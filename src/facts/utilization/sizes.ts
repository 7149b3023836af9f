import { isEncoderDecoder } from '../../llm/read-architecture.js';
import type { SourceShape } from '../../llm/shape.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import { stepKindsSql } from '../../model/record.js';
import { arithmeticConfig } from '../model-work.js';
import { makeKnownSizes, sizeColumns } from '../trace/known-sizes.js';
import type { TraceScope } from '../trace/scope.js';
import type { Step } from './steps.js';

/** Sizes of every step of a run, for steps without recorded sizes. */
export interface RunSizes {
  batch_size: number | null;
  input_len: number | null;
  /** Whether the model's decoder attends to the output of an encoder. */
  has_encoder: boolean;
  /** Source of the sizes. */
  from: string;
}

/** @param from source of the sizes, in words */
export const runSizesOf = (workload: Workload | null, from: string): RunSizes => ({
  batch_size: workload?.batch_size ?? null,
  input_len: workload?.input_len ?? null,
  has_encoder: workload?.model ? isEncoderDecoder(arithmeticConfig(workload.model).config) : false,
  from,
});

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
  /** What an encoder-decoder model's step does with its source, or why that is not known. */
  source?: SourceShape | MissingFigure;
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
    return batch * ((run.has_encoder ? 0 : run.input_len) + step.step_index + 1);
  });
  return {
    ...step,
    batch_size: batch,
    new_tokens: tokens,
    context_tokens_sum: context,
    ...(run.has_encoder ? { source: sourceOf(step, run, { tokens, context }) } : {}),
    from: [...sources].join(', '),
    assumed: sources.has(run.from),
  };
}

/**
 * The first prefill of an iteration runs the encoder; if it also ran the decoder, its context has only the decoder's
 * tokens. Every other step runs the decoder.
 */
function sourceOf(
  { kind, step_index, source_tokens }: Step,
  { input_len }: RunSizes,
  { tokens, context }: { tokens: number | null; context: number | null },
): SourceShape | MissingFigure {
  const length = source_tokens ?? input_len;
  if (length === null || tokens === null || context === null || step_index === null)
    return missing(
      'unknown_sizes',
      "the length of the encoder's output is not recorded (set it with --batch-size and --input-len)",
    );
  if (kind === 'prefill' && step_index === 0)
    return { step: context < tokens ? 'encode-and-decode' : 'encode', tokens: length };
  return { step: context === tokens ? 'first' : 'cached', tokens: length };
}

function withSource<T>(sources: Set<string>, value: T, from: string | null): T {
  if (from) sources.add(from);
  return value;
}
