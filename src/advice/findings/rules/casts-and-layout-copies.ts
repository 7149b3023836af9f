import { gainOf } from '../gain.js';
import { findConversions } from '../operators/conversions.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { chainsOf } from '../pointwise-chains.js';
import { conversionsOfWeights } from '../conversions-of-weights.js';
import { contextCopies, isContextCopy } from '../context-copies.js';
import { copyRoles } from '../kernel-roles.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceFactor, type SequenceKernel, stepSequence } from '../step-sequence.js';
import { callsOf, instanceWord, everyInstance, ms, part, plural } from '../words.js';

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
      withheld: 'less than 5 % of the stage is affected, or kernels shorter than 4 µs',
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
    const factor = instanceFactor(sequence, stage.compute_ms);
    // Conversions inside a chain of elementwise kernels belong to the chain.
    const chainKernels = new Set(chainsOf(sequence, stage.kind).flatMap(({ kernels }) => kernels));
    // Copies that grow with the context belong to kv_cache_concat.
    const growingCopies = await contextCopies(context, stage);
    const weightConversions = conversionsOfWeights(sequence, stage.kind)
      .map((kernels) => kernels.filter((kernel) => !isContextCopy(growingCopies, kernel)))
      .filter(({ length }) => length > 0);
    const weights = new Set(weightConversions.flat());
    const separate = sequence.filter(
      (kernel) =>
        (kernel.role === 'cast' || kernel.role === 'layout') &&
        kernel.dur_ns >= minNs &&
        !weights.has(kernel) &&
        !chainKernels.has(kernel) &&
        !isContextCopy(growingCopies, kernel),
    );
    const sum = (kernels: Iterable<SequenceKernel>) =>
      ([...kernels].reduce((total, { dur_ns }) => total + dur_ns, 0) * factor) / 1e6;
    const conversionTimes: Conversions = {
      weights: sum(weights),
      casts: sum(separate.filter(({ role }) => role === 'cast')),
      layouts: sum(separate.filter(({ role }) => role === 'layout')),
      n: weights.size + separate.length,
      gemms: weightConversions.length,
      dequantized: [...weights].some(({ class: opClass }) => opClass !== 'copy'),
    };
    const time = conversionTimes.weights + conversionTimes.casts + conversionTimes.layouts;
    if (time < minShare * stage.wall_ms) {
      return `separate casts and layout copies take ${part(time, stage.wall_ms)}`;
    }
    return finding(context, stage, conversionTimes);
  },
  findConversions,
);

/** Ms of a mean instance. */
interface Conversions {
  weights: number;
  casts: number;
  layouts: number;
  /** Kernels of a step. */
  n: number;
  /** GEMMs with converted weights. */
  gemms: number;
  /** Whether the weights are computed, not only cast or copied. */
  dequantized: boolean;
}

async function finding(context: FindingContext, stage: StageFacts, times: Conversions): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { weights, casts, layouts, n } = times;
  const time = weights + casts + layouts;
  const { evidence } = await context.evidence<{ kernel: string; per_instance: number; us: number }>(
    `SELECT coalesce(name, short_name) AS kernel, CASE WHEN class <> 'copy' THEN class WHEN ${copyRoles.cast} THEN 'cast' ELSE 'layout copy' END AS what,
            round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}'
       AND dur_ns >= ${minNs} AND (class = 'copy' AND (${copyRoles.cast} OR ${copyRoles.layout})${times.dequantized ? " OR class IN ('elementwise', 'quantization')" : ''}) GROUP BY ALL ORDER BY ms DESC`,
    (rows) => {
      const calls = rows
        .slice(0, times.dequantized ? 3 : 2)
        .map((row) => `${row.kernel}: ${callsOf(row)}`)
        .join('; ');
      return times.dequantized ? `all kernels of these names, other uses included: ${calls}` : calls;
    },
  );
  const text = weights >= time / 2 ? wordsForWeights(times, stage) : wordsForTensors(times, stage);
  return {
    stage: kind,
    title: (share) => `${text.what}: ${share} of ${everyInstance(kind)} (${plural(n, 'kernel')})`,
    at_stake_ms: time,
    cause: text.cause,
    change: { kind: 'code', ...text.change },
    gain: gainOf(wall, time, 'These kernels are removed, and no other gets slower.'),
    launches: n,
    confidence: 'medium',
    bars: classBars(context, kind, ['copy', 'quantization', ...(times.dequantized ? ['elementwise'] : [])]),
    evidence: [evidence],
    check: checkAgain,
  };
}

interface Words {
  what: string;
  cause: string;
  change: { text: string; example: string };
}

function wordsForWeights({ weights, gemms, dequantized }: Conversions, { kind }: StageFacts): Words {
  const cause = `Before ${plural(gemms, 'GEMM')} of ${instanceWord(kind)} kernels run that take as long as the GEMM, ${ms(weights)} in total: they move as many bytes as its weights, so the weights`;
  return dequantized
    ? {
        what: 'Weights dequantized at every use',
        cause: `${cause} are converted to the type of the GEMM in memory in every step. This reads and writes more than weights of 16 bits would.`,
        change: {
          text: 'Use GEMMs that read the quantized weights (Marlin and Machete in vLLM, the weight-only kernels of torchao), or keep 16-bit weights if they fit.',
          example:
            'quantize_(model, Int8WeightOnlyConfig()); model.forward = torch.compile(model.forward)  # torchao',
        },
      }
    : {
        what: 'Weights converted at every use',
        cause: `${cause} are converted to another type or layout in every step.`,
        change: {
          text: 'Convert the weights to the type and layout in which the GEMMs read them once, before the loop.',
          example: 'model = model.to(torch.bfloat16)',
        },
      };
}

function wordsForTensors({ weights, casts, layouts }: Conversions, { kind }: StageFacts): Words {
  const converting = weights + casts;
  const spent = [
    ...(converting > 0 ? [`${ms(converting)} on converting tensors to another type`] : []),
    ...(layouts > 0 ? [`${ms(layouts)} on copying tensors to another layout`] : []),
  ].join(' and ');
  const cause = `${instanceWord(kind)} spends ${spent}.`;
  return converting >= layouts
    ? {
        what: 'Casts',
        cause: `${cause} Weights stored in another type, such as float32, are converted again in every step.`,
        change: {
          text: 'Convert weights and activations to the compute type once, before the loop.',
          example: 'model = model.to(torch.bfloat16)',
        },
      }
    : {
        what: 'Layout copies',
        cause: `${cause} A strided view (transpose, expand, slice) is made contiguous before use.`,
        change: {
          text: 'Let the kernel read the strided view (scaled_dot_product_attention and matmul can), or produce the needed layout directly.',
          example: 'F.scaled_dot_product_attention(q, k, v, enable_gqa=True)  # no repeat_interleave',
        },
      };
}
