import { gainOf } from '../gain.js';
import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceFactor, stepSequence } from '../step-sequence.js';
import { everyInstance, instanceWord, ms, part, plural } from '../words.js';

/** Sorts of CUB and PyTorch, with their counting and filling kernels. */
const sortKernels =
  /RadixSort|SegmentedSort|MergeSort|bitonicSort|sortKeyValue|fill_reverse_indices|fill_index_and_segment/i;

/** Sampling sorts all logits, although it needs only the largest few. */
export const vocabularySort = stageRule(
  {
    id: 'vocabulary_sort',
    title: 'Sorting the whole vocabulary',
    docs: {
      finds: 'Sampling sorts the logits of the whole vocabulary, and sums and filters all of them.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: 'The time of the sort and half of what follows to the end of the step; low end the sort alone (at most 70 % of both), high end all of it.',
      change: 'Take the largest logits first, or sample without a sort.',
      withheld: 'less than 5 % of the stage is affected, or a sort before the last GEMM of the step',
    },
    references: [
      {
        title: 'FlashInfer: sorting-free sampling',
        url: 'https://flashinfer.ai/2025/03/10/sampling.html',
      },
      {
        title: 'torch.topk',
        url: 'https://docs.pytorch.org/docs/stable/generated/torch.topk.html',
      },
    ],
  },
  async (context, stage) => {
    const sequence = await stepSequence(context, stage.kind);
    const gemm = sequence.findLastIndex(({ class: opClass }) => opClass === 'gemm');
    const first = sequence.findIndex(({ name }, index) => index > gemm && sortKernels.test(name));
    if (gemm < 0 || first < 0) return 'nothing is sorted after the last GEMM';
    const factor = instanceFactor(sequence, stage.compute_ms) / 1e6;
    const kernels = sequence.slice(first);
    const time = factor * kernels.reduce((sum, { dur_ns }) => sum + dur_ns, 0);
    const sorting =
      factor *
      kernels.filter(({ name }) => sortKernels.test(name)).reduce((sum, { dur_ns }) => sum + dur_ns, 0);
    if (sorting < minShare * stage.wall_ms) return `sorting takes ${part(sorting, stage.wall_ms)}`;
    const classes = [...new Set(kernels.map(({ class: opClass }) => opClass))];
    return finding(context, stage, { kernels: kernels.length, time, sorting, classes });
  },
);

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { kernels, time, sorting, classes }: { kernels: number; time: number; sorting: number; classes: string[] },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { framework } = await programOf(context);
  const { evidence } = await context.evidence<{ kernel: string; ms: number }>(
    `SELECT coalesce(name, short_name) AS kernel, round(count(*) / ${instances}, 2) AS per_instance, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND regexp_matches(name, '${sortKernels.source}', 'i') GROUP BY ALL ORDER BY ms DESC`,
    (rows) =>
      rows
        .slice(0, 2)
        .map((row) => `${row.kernel}: ${ms(row.ms)}`)
        .join('; '),
  );
  return {
    stage: kind,
    title: (share) =>
      `Sorting the whole vocabulary: ${plural(kernels, 'kernel')} after the logits take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `After its last GEMM, ${instanceWord(kind)} sorts for ${ms(sorting)}; what follows, ${ms(time - sorting)}, sums and filters as many values. Sampling by top-k or top-p needs the order of the largest logits only.`,
    change:
      framework === 'vllm'
        ? {
            kind: 'flag',
            text: "Sample with FlashInfer's kernels, which do not sort, or give requests a top_k.",
            example: 'VLLM_USE_FLASHINFER_SAMPLER=1 vllm serve …',
          }
        : {
            kind: 'code',
            text: 'Take the largest logits first, and sort, sum and filter only those; or sample without a sort (FlashInfer).',
            example: 'values, ids = logits.topk(50)  # then softmax, top-p and multinomial over 50 values',
          },
    launches: kernels,
    gain: gainOf(
      wall,
      (sorting + time) / 2,
      'The sort goes, and half of what follows: a softmax and a draw over the largest logits take little, those over the whole vocabulary stay.',
      { low_ms: Math.min(sorting, 0.7 * time), high_ms: time },
    ),
    confidence: 'medium',
    bars: classBars(context, kind, classes),
    evidence: [evidence],
    check: checkAgain,
  };
}
