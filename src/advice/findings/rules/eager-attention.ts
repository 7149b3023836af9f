import { inList } from '../finding-tables.js';
import { gainOf } from '../gain.js';
import type { PhaseKind } from '../../../model/documents/trace.js';
import { necessaryOps } from '../../../facts/model-work.js';
import { fusedAttentionChange, multipliesScores } from '../attention-scores.js';
import { isFusedAttention, isSoftmax } from '../kernel-roles.js';
import { findUnfusedAttention } from '../operators/written-out-attention.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceFactor, type SequenceKernel, stepSequence } from '../step-sequence.js';
import { instanceWord, count, everyInstance, ms, part } from '../words.js';
import { formatPercent, formatQuantity, plural } from '../../../vocabulary/format.js';

/** Scale, mask, cast, dropout: kernels between scores and softmax, and between softmax and values. */
const maxKernelsBetween = 10;
/** Share of its roof that a fused kernel reaches on recent GPUs (FlashAttention-2 and 3 papers: 50 to 75 % of compute; bytes: 70 %). */
const fusedEfficiency = { expected: 0.5, high: 0.7 };
/** Without a model: share of the time that remains, for two GEMMs that no longer write and read scores. */
const remainingWithoutModel = 0.15;

/** One unfused attention: two GEMMs around a softmax over scores in memory. */
interface Region {
  kernels: SequenceKernel[];
  ns: number;
}

/** Attention runs as two GEMMs and a softmax over a score matrix in memory, instead of as one kernel. */
export const eagerAttention = stageRule(
  {
    id: 'eager_attention',
    title: 'Eager attention',
    docs: {
      finds:
        'Attention runs as two GEMMs and a softmax over a score matrix in memory, instead of as one kernel.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: "The time of those kernels minus a fused kernel's time: the necessary work of attention at the efficiency of such kernels.",
      change: 'Use scaled_dot_product_attention or FlashAttention.',
      withheld:
        'less than 5 % of the stage is affected, or no sign that a softmax between two GEMMs is of attention scores (a router and a sampler compute one, too)',
    },
    references: [
      { title: 'FlashAttention', url: 'https://arxiv.org/abs/2205.14135' },
      {
        title: 'torch.nn.functional.scaled_dot_product_attention',
        url: 'https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html',
      },
    ],
  },
  async (context, stage) => {
    const sequence = await stepSequence(context, stage.kind);
    const factor = instanceFactor(sequence, stage.compute_ms);
    const scores = await scoresOf(context, stage.kind, sequence);
    const regions = regionsOf(sequence, scores);
    if (regions.length === 0) return 'no softmax of attention scores between two GEMMs';
    const fusedKernels = sequence.filter(isFusedAttention).length;
    if (!scores.hasShapes && fusedKernels >= regions.length)
      return `fused attention kernels run (${fusedKernels} per instance), and nothing shows that the softmax between two GEMMs is of attention scores`;
    const time = (regions.reduce((sum, { ns }) => sum + ns, 0) * factor) / 1e6;
    const fused = await fusedMs(context, stage.kind, time);
    const stake = time - Math.min(time, fused.expected);
    if (stake < minShare * stage.wall_ms) {
      return `${regions.length} unfused attentions take ${part(time, stage.wall_ms)}; one kernel each would save ${part(stake, stage.wall_ms)}`;
    }
    return {
      ...(await finding(context, stage, { regions, time, stake, best: time - Math.min(time, fused.high) })),
      covers: mostGemmTimeIn(regions, sequence) ? ['gemm_shape'] : [],
    };
  },
  findUnfusedAttention,
);

/** Evidence of a softmax over a score matrix between two GEMMs. */
interface Scores {
  /** GEMM operators, with their input shapes where these were recorded. */
  gemms: ReadonlyMap<number, { name: string; shapes: number[][] | null }>;
  /** Whether the shapes show which GEMMs multiply scores. */
  hasShapes: boolean;
  /** Elements of one layer's score matrix and hidden state; null if the model's sizes are not known. */
  elements: number | null;
  hidden: number | null;
  /** Whether the stage also runs fused attention. */
  fused: boolean;
}

/** Maximum elements per thread of PyTorch's elementwise kernels. */
const elementsPerThread = 16;

async function scoresOf(
  context: FindingContext,
  kind: PhaseKind,
  sequence: readonly SequenceKernel[],
): Promise<Scores> {
  const ids = new Set(
    sequence.flatMap(({ class: opClass, op_id: id }) => (opClass === 'gemm' && id !== null ? [id] : [])),
  );
  const rows =
    ids.size === 0
      ? []
      : await context.database.query<{ op_id: number; name: string; shapes: string | null }>(
          `SELECT op_id, name, input_shapes AS shapes FROM rank_ops WHERE op_id IN (${[...ids].join(', ')})`,
        );
  const { model } = context;
  const shape = await stageShape(context, kind);
  const sized = 'architecture' in model && shape;
  const heads = sized ? (model.architecture.layers[0]?.attention.headCount ?? null) : null;
  const queries = shape ? shape.batchSize * shape.newTokens : 0;
  return {
    gemms: new Map(
      rows.map(({ op_id: id, name, shapes }) => [
        id,
        { name, shapes: shapes === null ? null : (JSON.parse(shapes) as number[][]) },
      ]),
    ),
    hasShapes: rows.some(({ shapes }) => shapes !== null),
    elements: sized && heads ? heads * queries * (shape.contextTokens + shape.newTokens) : null,
    hidden: sized ? queries * model.architecture.hiddenSize : null,
    fused: sequence.some(isFusedAttention),
  };
}

/** Operators that multiply by a matrix without a batch: a layer's weights, which attention's GEMMs never are. */
const weightGemm = /^aten::(?:addmm|mm|addmv|mv)(?:_|$)/;

/**
 * Whether kernels between two GEMMs compute a softmax of scores: by the GEMM shapes where they were recorded, else by a
 * softmax kernel with nothing of a router or sampler around it, else by a kernel as large as the model's score matrix and far
 * larger than its hidden state, unless attention is fused: sizes are means, and steps of a stage may differ. A norm between two GEMMs
 * has none of these.
 */
function isSoftmaxOfScores(
  kernels: readonly SequenceKernel[],
  softmax: number,
  { gemms, hasShapes, elements, hidden, fused }: Scores,
): boolean {
  const [before, after] = [kernels[0]!, kernels.at(-1)!].map(({ op_id: id }) => gemms.get(id ?? -1));
  if (hasShapes) return multipliesScores(before?.shapes ?? undefined, after?.shapes ?? undefined);
  if ([before, after].some((gemm) => gemm && weightGemm.test(gemm.name))) return false;
  if (isSoftmax(kernels[softmax]!))
    return kernels.every(
      (kernel, i) =>
        !routerClasses.has(kernel.class) && (i < softmax || !classesAfterRouter.has(kernel.class)),
    );
  if (fused || elements === null || hidden === null || elements < 4 * hidden) return false;
  return kernels.some(({ class: opClass, blocks, threads }) => {
    const all = (blocks ?? 0) * (threads ?? 0);
    return opClass === 'elementwise' && elementsPerThread * all >= elements && all > hidden;
  });
}

/** Classes that a router or a sampler runs around its softmax: top-k and sort, routing, communication. */
const routerClasses: ReadonlySet<string> = new Set(['sampling', 'moe_routing', 'communication']);
/** After the softmax of a router come sums and gathers; probabilities of attention are only cast and dropped out. */
const classesAfterRouter: ReadonlySet<string> = new Set(['norm', 'embedding']);

/**
 * From the GEMM before a softmax to the GEMM after it, with the copies right before and after them: GEMMs want other layouts
 * than fused kernels. An unfused softmax includes a reduction.
 */
function regionsOf(sequence: readonly SequenceKernel[], scores: Scores): Region[] {
  const regions: Region[] = [];
  let firstFree = 0;
  for (const [index, kernel] of sequence.entries()) {
    if (index < firstFree) continue;
    if (!isSoftmax(kernel) && kernel.class !== 'norm') continue;
    const before = nearestGemm(sequence, index, -1, firstFree);
    const after = nearestGemm(sequence, index, 1, sequence.length - 1);
    if (before === null || after === null) continue;
    const attention = sequence.slice(before, after + 1);
    if (attention.some(isFusedAttention) || !isSoftmaxOfScores(attention, index - before, scores)) continue;
    const first = lastAdjacentCopy(sequence, before, -1, firstFree);
    const last = lastAdjacentCopy(sequence, after, 1, sequence.length - 1);
    const kernels = sequence.slice(first, last + 1);
    regions.push({ kernels, ns: kernels.reduce((sum, { dur_ns }) => sum + dur_ns, 0) });
    firstFree = last + 1;
  }
  return regions;
}

/** Whether most of a stage's GEMM time is in attention: then the GEMMs that other rules report are gone with its change. */
function mostGemmTimeIn(regions: readonly Region[], sequence: readonly SequenceKernel[]): boolean {
  const gemmNs = (kernels: readonly SequenceKernel[]) =>
    kernels.reduce((sum, kernel) => sum + (kernel.class === 'gemm' ? kernel.dur_ns : 0), 0);
  return 2 * gemmNs(regions.flatMap(({ kernels }) => kernels)) > gemmNs(sequence);
}

/** Index of the last copy in a row of copies next to a GEMM; the GEMM's index if there is none. */
function lastAdjacentCopy(
  sequence: readonly SequenceKernel[],
  gemm: number,
  step: 1 | -1,
  limit: number,
): number {
  let index = gemm;
  while (index !== limit && sequence[index + step]?.class === 'copy') index += step;
  return index;
}

function nearestGemm(
  sequence: readonly SequenceKernel[],
  from: number,
  step: 1 | -1,
  limit: number,
): number | null {
  for (
    let i = from + step, passed = 0;
    passed < maxKernelsBetween && (step === 1 ? i <= limit : i >= limit);
    i += step, passed++
  ) {
    if (sequence[i]?.class === 'gemm') return i;
  }
  return null;
}

/** Time of fused attention for the stage: the model's necessary work at the efficiency of such kernels. */
async function fusedMs(
  context: FindingContext,
  kind: PhaseKind,
  time: number,
): Promise<{ expected: number; high: number }> {
  const { model, roofs } = context;
  const shape = await stageShape(context, kind);
  const bandwidth = roofs?.roofBandwidth.value ?? null;
  if (!('architecture' in model) || !shape || !roofs || bandwidth === null) {
    return { expected: remainingWithoutModel * time, high: 0.5 * remainingWithoutModel * time };
  }
  let seconds = 0;
  for (const op of necessaryOps(model, shape).filter(({ class: opClass }) => opClass === 'attention')) {
    const peak = roofs.roofFlops(op.dtype).value;
    if (peak === null)
      return { expected: remainingWithoutModel * time, high: 0.5 * remainingWithoutModel * time };
    const bytes = Object.values(op.bytes).reduce((sum, value) => sum + value, 0);
    seconds += Math.max(op.flops / peak, bytes / bandwidth);
  }
  return {
    expected: (seconds * 1e3) / fusedEfficiency.expected,
    high: (seconds * 1e3) / fusedEfficiency.high,
  };
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { regions, time, stake, best }: { regions: Region[]; time: number; stake: number; best: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const names = [...new Set(regions[0]!.kernels.map(({ name }) => name))];
  const { evidence } = await context.evidence<{
    kernel: string;
    per_instance: number;
    us: number;
    ms: number;
  }>(
    `SELECT coalesce(name, short_name) AS kernel, class, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND ${inList(names)} GROUP BY ALL ORDER BY ms DESC`,
    (rows) =>
      `softmax between two GEMMs in ${plural(regions.length, 'place')}, ${count(regions[0]!.kernels.length)} kernels each; the longest kernel: ${rows[0]?.kernel ?? '–'}, ${formatQuantity(rows[0]?.us ?? Number.NaN, 'us')}`,
  );
  return {
    stage: kind,
    title: (share) =>
      `Eager attention: ${plural(regions.length, 'attention')} of ${count(regions[0]!.kernels.length)} kernels ${regions.length > 1 ? 'cost' : 'costs'} ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `In ${instanceWord(kind)} one GEMM writes the attention scores to memory, then scale, mask, softmax and casts read and write them, and the second GEMM reads them: ${ms(time)}. The score matrix grows with ${kind === 'decode' ? 'the context' : 'the square of the context'}; a fused kernel keeps it on the chip.`,
    change: await fusedAttentionChange(
      context.database,
      'AutoModelForCausalLM.from_pretrained(name, attn_implementation="sdpa")',
    ),
    launches: regions.reduce((sum, { kernels }) => sum + kernels.length - 1, 0),
    gain: gainOf(
      wall,
      stake,
      `A fused kernel reaches ${formatPercent(fusedEfficiency.expected)} of its roof for the model's causal attention (without a model: ${formatPercent(remainingWithoutModel)} of the time remains).`,
      { low_ms: 0.8 * stake, high_ms: Math.max(stake, best), what_if: 'fused-attention' },
    ),
    confidence: 'high',
    bars: classBars(context, kind, ['attention', 'gemm', 'elementwise', 'copy']),
    evidence: [evidence],
    check: checkAgain,
  };
}
