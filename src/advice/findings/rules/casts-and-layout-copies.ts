import { conversions } from '../operators/conversions.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { chainsOf } from '../pointwise-chains.js';
import { contextCopies } from '../context-copies.js';
import { copyRoles } from '../kernel-roles.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { carried, stepSequence } from '../step-sequence.js';
import { instanceWord, count, everyInstance, ms, part } from '../words.js';
import { formatQuantity } from '../../../vocabulary/format.js';

/** Shorter ones write the step's own tokens (for example into a cache): dominated by launch cost. */
const minNs = 4000;

/** Tensors are converted or copied to another layout although the next kernel could read them directly. */
export const castsAndLayoutCopies = stageRule(
  {
    id: 'casts_and_layout_copies',
    title: 'Casts and layout copies',
    docs: {
      finds:
        'Tensors are converted to another type or copied to another layout although the next kernel could read them directly.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: 'The time of those kernels; low end 70 % of it.',
      change: 'Keep weights and activations in the type and layout in which they are used.',
      withheld: 'less than 5 % of the stage at stake, or kernels shorter than 4 µs',
    },
    references: [
      {
        title: 'PyTorch: automatic mixed precision',
        url: 'https://docs.pytorch.org/docs/stable/amp.html',
      },
      {
        title: 'PyTorch: tensor views',
        url: 'https://docs.pytorch.org/docs/stable/tensor_view.html',
      },
    ],
  },
  async (context, stage) => {
    const sequence = await stepSequence(context, stage.kind);
    const factor = carried(sequence, stage.compute_ms);
    // Conversions inside a chain of elementwise kernels belong to the chain.
    const chained = new Set(chainsOf(sequence).flatMap(({ kernels }) => kernels));
    // Copies that grow with the context belong to kv_cache_concat.
    const ofContext = new Set((await contextCopies(context, stage)).map(({ name }) => name));
    const own = sequence.filter(
      (kernel) =>
        (kernel.role === 'cast' || kernel.role === 'layout') &&
        kernel.dur_ns >= minNs &&
        !chained.has(kernel) &&
        !ofContext.has(kernel.name),
    );
    const sum = (role: string) =>
      own.filter((kernel) => kernel.role === role).reduce((total, { dur_ns }) => total + dur_ns, 0) * factor;
    const casts = sum('cast') / 1e6;
    const layouts = sum('layout') / 1e6;
    const time = casts + layouts;
    if (time < minShare * stage.wall_ms) {
      return `separate casts and layout copies take ${part(time, stage.wall_ms)}`;
    }
    return finding(context, stage, { casts, layouts, n: own.length });
  },
  conversions,
);

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { casts, layouts, n }: { casts: number; layouts: number; n: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const time = casts + layouts;
  const { evidence } = await context.evidence<{ kernel: string; per_instance: number; us: number }>(
    `SELECT coalesce(short_name, name) AS kernel, CASE WHEN ${copyRoles.cast} THEN 'cast' ELSE 'layout copy' END AS what,
            round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM focus_kernels WHERE ${kind === 'outside' ? 'true' : `phase = '${kind}'`} AND class = 'copy' AND (${copyRoles.cast} OR ${copyRoles.layout}) GROUP BY ALL ORDER BY ms DESC`,
    (rows) =>
      rows
        .slice(0, 2)
        .map((row) => `${row.kernel}: ${row.per_instance} of ${formatQuantity(row.us, 'us')}`)
        .join('; '),
  );
  const mostlyCasts = casts >= layouts;
  return {
    stage: kind,
    title: `${mostlyCasts ? 'Casts' : 'Layout copies'}: ${part(time, wall)} of ${everyInstance(kind)} (${count(n)} kernels)`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} spends ${ms(casts)} on converting tensors to another type and ${ms(layouts)} on copying them to another layout. ${mostlyCasts ? 'Weights stored in another type, such as float32, are converted again in every step.' : 'A strided view (transpose, expand, slice) is made contiguous before use.'}`,
    change: {
      kind: 'code',
      text: mostlyCasts
        ? 'Convert weights and activations to the compute type once, before the loop.'
        : 'Let the kernel read the strided view (scaled_dot_product_attention and matmul can), or produce the needed layout directly.',
      example: mostlyCasts
        ? 'model = model.to(torch.bfloat16)'
        : 'F.scaled_dot_product_attention(q, k, v, enable_gqa=True)  # no repeat_interleave',
    },
    gain: {
      expected_ms: time,
      low_ms: 0.7 * time,
      high_ms: time,
      after_ms: wall - time,
      assumption: 'The conversions are removed, and no other kernel gets slower.',
      what_if: null,
    },
    confidence: 'medium',
    bars: classBars(context, kind, ['copy', 'quantization']),
    evidence: [evidence],
    check: checkAgain,
  };
}
