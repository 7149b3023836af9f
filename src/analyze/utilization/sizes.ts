import type { SessionDatabase } from '../../session/query.js';
import { makeKnownSizes } from '../trace/batches.js';
import type { TraceScope } from '../trace/scope.js';
import type { Step } from './steps.js';

/** Sizes of every step of a run, for steps that do not tell their own. */
export interface RunSizes {
  batch_size: number | null;
  input_len: number | null;
  /** Who says so. */
  from: string;
}

type Sizes = Pick<Step, 'batch_size' | 'new_tokens' | 'context_tokens_sum'>;

/** Steps of a timeline by its windows (makeWindows), with what their ranges or the workload's record say of their sizes. */
export async function tracedSteps(scope: TraceScope): Promise<Step[]> {
  await makeKnownSizes(scope);
  return scope.database.query<Step>(
    `SELECT w.stage_id, 0 AS pid, w.kind, NULL AS point, w.iteration, w.step_index, (w.end_ns - w.start_ns)::DOUBLE AS wall_ns,
            k.batch_size, k.new_tokens, k.context_tokens_sum
     FROM windows w LEFT JOIN known_sizes k USING (stage_id)
     WHERE w.kind IN ('prefill', 'decode', 'mixed') ORDER BY w.start_ns, w.stage_id`,
  );
}

/**
 * Sizes that operators' shapes tell, by step: token ids of the embedding are (batch, tokens), keys of the attention
 * (batch, heads, context, head dimension), as PyTorch has them. Needs the views of traceScope.
 */
export async function operatorSizes(database: SessionDatabase): Promise<Map<number, Sizes>> {
  const rows = await database.query<{ step_id: number; name: string; input_shapes: string }>(
    `SELECT DISTINCT step_id, name, input_shapes FROM focus_ops
     WHERE step_id IS NOT NULL AND input_shapes IS NOT NULL
       AND name IN ('aten::embedding', 'aten::scaled_dot_product_attention')`,
  );
  const found = new Map<number, Sizes>();
  for (const { step_id, name, input_shapes } of rows) {
    const known = found.get(step_id) ?? { batch_size: null, new_tokens: null, context_tokens_sum: null };
    const second = dimensionsOf(input_shapes)[1] ?? [];
    if (name === 'aten::embedding' && second.length === 2) {
      const [batch = 0, tokens = 0] = second;
      // Positions are looked up once for all sequences: the larger product is that of the tokens.
      if (batch * tokens > (known.new_tokens ?? 0)) {
        known.batch_size = batch;
        known.new_tokens = batch * tokens;
      }
    } else if (name !== 'aten::embedding' && second.length === 4) {
      known.context_tokens_sum = Math.max(known.context_tokens_sum ?? 0, second[0]! * second[2]!);
    }
    found.set(step_id, known);
  }
  return found;
}

function dimensionsOf(text: string): number[][] {
  const parsed = JSON.parse(text) as unknown;
  return Array.isArray(parsed) ? parsed.map((one) => (Array.isArray(one) ? (one as number[]) : [])) : [];
}

/** A step with its sizes filled in. */
export type SizedStep = Step & {
  /** In words: where the sizes come from. */
  from: string;
  /** Whether one of them is the run's, which the step need not share. */
  assumed: boolean;
};

export function withSizes(step: Step, shapes: Sizes | undefined, run: RunSizes): SizedStep {
  const used = new Set<string>();
  const first = (key: keyof Sizes, otherwise: () => number | null): number | null => {
    if (step[key] !== null) return said(used, step[key], 'the stages');
    const shape = shapes?.[key] ?? null;
    if (shape !== null) return said(used, shape, "operators' shapes");
    const value = otherwise();
    return value === null ? null : said(used, value, run.from);
  };
  const prefill = step.kind === 'prefill';
  const batch = first('batch_size', () => run.batch_size);
  const tokens = first('new_tokens', () =>
    batch === null || step.kind === 'mixed'
      ? null
      : !prefill
        ? batch
        : run.input_len === null
          ? null
          : batch * run.input_len,
  );
  const context = first('context_tokens_sum', () => {
    // A whole prompt has nothing cached before it.
    if (prefill) return tokens;
    if (batch === null || run.input_len === null || step.step_index === null) return null;
    return batch * (run.input_len + step.step_index + 1);
  });
  return {
    ...step,
    batch_size: batch,
    new_tokens: tokens,
    context_tokens_sum: context,
    from: [...used].join(', '),
    assumed: used.has(run.from),
  };
}

function said<T>(used: Set<string>, value: T, from: string): T {
  used.add(from);
  return value;
}
