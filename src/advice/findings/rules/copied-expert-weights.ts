import { necessaryOps } from '../../../facts/model-work.js';
import { stepKinds } from '../../../model/record.js';
import { gainOf } from '../gain.js';
import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { stageShape } from '../stage-shape.js';
import { callsOf, everyInstance, instanceWord, ms, part, plural } from '../words.js';

/** Copies of expert matrices take at least this share of the time for their bytes: caches help. */
const minCopyShare = 0.4;
/** Share of the bandwidth at which grouped GEMMs of few tokens read experts: 38 to 61 % on an H200 (Mixtral, 1 to 32 tokens). */
const groupedShare = 0.5;
/** Launches that grouped GEMMs need in addition: they sort tokens by expert and count them (transformers 5.17). */
const groupedLaunchesPerLayer = 17;

/** The experts' matrices of a stage, ms per mean instance at this GPU's bandwidth. */
interface ExpertBytes {
  /** Pairs of token and expert. */
  pairs: number;
  /** Reading each chosen expert once. */
  once_ms: number;
  /** Reading a matrix per pair. */
  perPair_ms: number;
  /** Copying the smallest matrix of a layer per pair. */
  smallestCopy_ms: number;
  /** Layers with experts. */
  layers: number;
}

/** The matrices of the chosen experts are copied for each token before they are multiplied. */
export const copiedExpertWeights = stageRule(
  {
    id: 'copied_expert_weights',
    title: 'Copied expert weights',
    docs: {
      finds: 'The matrices of the chosen experts are copied for each token before they are multiplied.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler, the model's config.json, roofs of the GPU",
      gain: 'The time of the copies and of reading a matrix per pair of token and expert, less that of grouped GEMMs, which read each chosen expert once at half of the bandwidth.',
      change: 'Compute the experts with grouped GEMMs or a fused kernel.',
      withheld: 'less than 5 % of the stage is affected, or fewer such copies than layers with experts',
    },
    references: [
      {
        title: 'Hugging Face transformers: experts implementations',
        url: 'https://huggingface.co/docs/transformers/experts_interface',
      },
    ],
  },
  async (context, stage) => {
    if (!stepKinds.some((kind) => kind === stage.kind)) return 'judged for steps of inference only';
    const experts = await expertBytes(context, stage);
    if (typeof experts === 'string') return experts;
    // A large copy may take several kernels, each of one matrix or more.
    const minNs = (minCopyShare * experts.smallestCopy_ms * 1e6) / experts.pairs;
    const { rows, evidence } = await context.evidence<{
      kernel: string;
      per_instance: number;
      us: number;
      ms: number;
    }>(
      `SELECT coalesce(name, short_name) AS kernel, round(count(*) / ${stage.instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
              round(sum(exclusive_ns) / 1e6 / ${stage.instances}, 4) AS ms
       FROM phase_kernels WHERE step_kind = '${stage.kind}' AND class = 'embedding' AND dur_ns >= ${minNs}
       GROUP BY ALL ORDER BY ms DESC`,
      (all) => all.map((row) => `${row.kernel}: ${callsOf(row)}`).join('; '),
    );
    const kernels = rows.reduce((sum, row) => sum + row.per_instance, 0);
    const copying = rows.reduce((sum, row) => sum + row.ms, 0);
    if (kernels < experts.layers || copying < minCopyShare * experts.layers * experts.smallestCopy_ms)
      return `${plural(kernels, 'kernel')} could have copied matrices of experts, in ${plural(experts.layers, 'layer')} with experts, for ${ms(copying)}`;
    const gain = copying + experts.perPair_ms - experts.once_ms / groupedShare;
    if (gain < minShare * stage.wall_ms)
      return `copies of experts cost ${part(Math.max(0, gain), stage.wall_ms)}`;
    return finding(context, stage, { experts, kernels, copying, gain, evidence });
  },
);

async function expertBytes(context: FindingContext, { kind }: StageFacts): Promise<ExpertBytes | string> {
  const { model, roofs } = context;
  if (!('architecture' in model)) return "the model's arithmetic is not known";
  if (!model.architecture.layers.some(({ mlp }) => mlp.kind === 'moe')) return 'the model has no experts';
  const shape = await stageShape(context, kind);
  const bandwidth = roofs?.roofBandwidth.value ?? null;
  if (!shape || bandwidth === null) return 'batch and context, or the bandwidth of this GPU, are not known';
  const ops = necessaryOps(model, shape).flatMap(({ name, bytes, gemm, layer }) =>
    gemm && name.startsWith('experts_')
      ? [{ layer, once: bytes.weights, perPair: bytes.weights * gemm.m, pairs: gemm.m * gemm.batch }]
      : [],
  );
  const time = (bytes: number) => (1e3 * bytes) / bandwidth;
  return {
    pairs: Math.round(ops[0]?.pairs ?? 0),
    once_ms: time(ops.reduce((sum, { once }) => sum + once, 0)),
    perPair_ms: time(ops.reduce((sum, { perPair }) => sum + perPair, 0)),
    // A copy reads and writes.
    smallestCopy_ms: time(2 * Math.min(...ops.map(({ perPair }) => perPair))),
    layers: new Set(ops.map(({ layer }) => layer)).size,
  };
}

async function finding(
  context: FindingContext,
  { kind, wall_ms: wall }: StageFacts,
  {
    experts,
    kernels,
    copying,
    gain,
    evidence,
  }: {
    experts: ExpertBytes;
    kernels: number;
    copying: number;
    gain: number;
    evidence: FoundDraft['evidence'][number];
  },
): Promise<FoundDraft> {
  const { framework } = await programOf(context);
  return {
    stage: kind,
    title: (share) =>
      `Copied expert weights: ${plural(kernels, 'kernel')} cost ${share} of ${everyInstance(kind)}`,
    at_stake_ms: gain,
    cause: `For each of its ${plural(experts.pairs, 'pair')} of token and expert, ${instanceWord(kind)} copies the matrices of the expert and multiplies by the copy. Copying takes ${ms(copying)}, and reading the copies at least ${ms(experts.perPair_ms)}; reading each chosen expert once takes ${ms(experts.once_ms)}.`,
    change: {
      kind: 'code',
      text: 'Compute the experts with grouped GEMMs or a fused kernel, which read the weights where they are. transformers uses grouped GEMMs by default, but copies in the decode steps of generate(), which is faster only for few tokens.',
      example:
        framework === null
          ? 'model._optimize_model_for_decode = contextlib.nullcontext  # generate() keeps grouped_mm'
          : null,
    },
    gain: gainOf(
      wall,
      gain,
      'Grouped GEMMs read each chosen expert once, at half of the bandwidth; uniform routing.',
      { high_ms: Math.min(wall, 1.2 * gain) },
    ),
    launches: -groupedLaunchesPerLayer * experts.layers,
    confidence: 'medium',
    bars: classBars(context, kind, ['embedding', 'gemm']),
    evidence: [evidence],
    check: checkAgain,
  };
}
