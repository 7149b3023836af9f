import { gainOf } from '../gain.js';
import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import type { OperatorStage } from '../operators/operator-stages.js';
import { barsOf, checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { checkOnCpu } from '../operators/copied-context.js';
import { plural } from '../../../vocabulary/format.js';
import { count, everyInstance, ms, part } from '../words.js';

type Row = { batch_size: number; longest: number; mean_length: number; positions: number; padding: number };

/** Prompts of a batch are padded to the longest, and the padding is computed. */
export const padding: Rule = stageRule(
  {
    id: 'padding',
    title: 'Padding is computed',
    docs: {
      finds: 'Prompts of a batch are padded to the longest one, and the model computes the padding too.',
      needs:
        "inferscope's hooks under the evaluator none: they count the zeros of a program's attention mask (`run --evaluator none,nsys`)",
      gain: 'The time of the stage in proportion to the padded positions; low end 60 % of it, because smaller batches are less efficient.',
      change: 'Batch prompts of similar length, or pack them without padding.',
      withheld: 'less than 5 % of the stage is affected, or no attention mask of its prompts was counted',
    },
    references: [
      {
        title: 'Hugging Face transformers: padding-free batches',
        url: 'https://huggingface.co/docs/transformers/main_classes/data_collator#transformers.DataCollatorWithFlattening',
      },
    ],
  },
  judge,
  judge,
);

async function judge(
  context: FindingContext,
  stage: StageFacts | OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const { rows, evidence } = await context.evidence<Row>(
    `SELECT batch_size, new_tokens // batch_size AS longest, round(avg((new_tokens - padding_tokens) / batch_size), 1) AS mean_length,
       sum(new_tokens)::DOUBLE AS positions, sum(padding_tokens)::DOUBLE AS padding
     FROM stages WHERE kind = '${kind}' AND NOT warmup AND padding_tokens IS NOT NULL AND new_tokens > 0 AND batch_size > 0
     GROUP BY ALL ORDER BY padding DESC`,
    (evidenceRows) =>
      evidenceRows
        .slice(0, 2)
        .map(
          (row) =>
            `${plural(row.batch_size, 'prompt')} of ${plural(row.mean_length, 'token')} on average, padded to ${count(row.longest)}`,
        )
        .join('; '),
  );
  const positions = rows.reduce((sum, row) => sum + row.positions, 0);
  if (positions === 0) return 'no attention mask was counted';
  const share = rows.reduce((sum, row) => sum + row.padding, 0) / positions;
  // Host time per launch does not depend on the number of tokens.
  const work = 'compute_ms' in stage ? stage.compute_ms : stage.operators_ms;
  const gain = share * Math.min(work, wall);
  const reason = `${part(share, 1)} of its positions are padding`;
  if (gain < minShare * wall) return reason;
  const { framework } = await programOf(context);
  return {
    stage: kind,
    title: `Padding is computed: ${part(share, 1)} of the positions of ${everyInstance(kind)}`,
    at_stake_ms: gain,
    cause: `Prompts of a batch are padded to the longest one. The model computes the padding as it does tokens: ${ms(gain)} of ${ms(wall)}.`,
    change: {
      kind: 'code',
      text: 'Put prompts of similar length into a batch (sort them by length first), or pack them without padding.',
      example:
        framework === null
          ? "prompts.sort(key=len)  # then batches of neighbors; or tokenizer(..., padding='longest') where max_length was given"
          : 'prompts.sort(key=len)  # then batches of neighbors',
    },
    gain: gainOf(
      wall,
      gain,
      'The time is proportional to the positions; batches without padding are as efficient.',
      { low_ms: 0.6 * gain, high_ms: Math.min(wall, 1.1 * gain) },
    ),
    proportional: true,
    confidence: 'medium',
    bars: [
      ...barsOf(context, kind, ['roofline', 'serial']),
      ...classBars(context, kind, ['gemm', 'attention', 'elementwise', 'norm', 'copy', 'embedding']),
    ],
    evidence: [evidence],
    check: context.scope ? checkAgain : checkOnCpu,
  };
}
