import { gainOf } from '../gain.js';
import { gainOfGemms, logitsGemms, longestGemmsSql } from '../logits-gemm.js';
import { barsOf, classBars, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { count, everyInstance, instanceWord, ms } from '../words.js';

/** With fewer sequences the GEMM looks like any slow one. */
const minSequences = 4;
/** Maximum deviation of its time from one read of the weights per sequence. */
const tolerance = 0.25;

/** The GEMM with the vocabulary runs once per sequence, and reads its weights each time. */
export const gemmPerSequence = stageRule(
  {
    id: 'gemm_per_sequence',
    title: 'Logits computed sequence by sequence',
    docs: {
      finds:
        'The GEMM that computes the logits reads its weights once for each sequence of the batch: it takes as long as so many reads.',
      needs: 'a GPU timeline with the model, the batch and the roofline',
      gain: 'The time of the GEMM above its roofline with one read of its weights; low end 70 % of it.',
      change: 'Make the hidden states of the last tokens contiguous before the LM head.',
      withheld:
        'less than 5 % of the stage is affected, fewer than 4 sequences, or a time that differs by more than 25 % from so many reads',
    },
    references: [
      {
        title: 'PyTorch: torch.matmul of more than two dimensions',
        url: 'https://docs.pytorch.org/docs/stable/generated/torch.matmul.html',
      },
      {
        title: 'PyTorch: Tensor.contiguous',
        url: 'https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html',
      },
    ],
  },
  async (context, stage) => {
    const gemms = await logitsGemms(context, stage);
    if (typeof gemms === 'string') return gemms;
    const { kind, wall_ms: wall } = stage;
    const found = gainOfGemms(gemms, ({ shape, ms: gemmMs, read_ms, limitMs }) =>
      shape.batchSize < minSequences || Math.abs(gemmMs / read_ms / shape.batchSize - 1) > tolerance
        ? null
        : // Not the time of one read: with many rows arithmetic limits the GEMM.
          gemmMs - limitMs(shape.batchSize),
    );
    const { shape, ms: gemmMs, read_ms } = found?.largest ?? gemms[0]!;
    const [sequences, reads] = [shape.batchSize, gemmMs / read_ms];
    const summary = `the last GEMM takes ${ms(gemmMs)}, ${count(reads)} times as long as one read of its weights, for ${count(sequences)} sequences`;
    if (!found || found.gain < minShare * wall) return summary;
    const { gain } = found;
    const { evidence } = await context.evidence<{ kernel: string; longest_us: number }>(
      longestGemmsSql(stage),
      () => summary,
    );
    return {
      stage: kind,
      title: (share) =>
        `Logits computed sequence by sequence: the GEMM costs ${share} of ${everyInstance(kind)}`,
      at_stake_ms: gain,
      cause: `The last GEMM of ${instanceWord(kind)} takes ${ms(gemmMs)}. One read of its weights takes ${ms(read_ms)}, and ${count(sequences)} sequences need no more than one: ${count(reads)} reads mean that the GEMM is computed for each sequence by itself. PyTorch does so where the last token's hidden states are a view of the whole prompt's, hidden[:, -1:], as stock Hugging Face models make it, and the weights need no gradients (requires_grad_(False), or created in inference mode).`,
      change: {
        kind: 'code',
        text: 'Make the hidden states contiguous before the LM head.',
        example:
          'model.lm_head.register_forward_pre_hook(lambda module, args: (args[0].contiguous(),))  # transformers',
      },
      gain: gainOf(
        wall,
        gain,
        'One GEMM of all sequences reads its weights once, and reaches its roofline.',
        {
          high_ms: found.gemm_ms,
        },
      ),
      confidence: 'medium',
      covers: ['gemm_shape'],
      // Other GEMMs may be faster than the measured roofline, and hide in the sum of the class what this one takes.
      bars: [...classBars(context, kind, ['gemm']), ...barsOf(context, kind, ['roofline'])],
      evidence: [evidence],
      check: checkAgain,
    };
  },
);
