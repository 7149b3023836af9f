import { gainOf } from '../gain.js';
import { programOf, type Framework } from '../framework.js';
import { type Chain, chainsOf } from '../pointwise-chains.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceFactor, stepSequence } from '../step-sequence.js';
import { classLabel } from '../../../vocabulary/op-classes.js';
import { joinWithAnd } from '../../../vocabulary/sentence.js';
import { instanceWord, count, everyInstance, ms, part, plural } from '../words.js';

/** Norms, activations and additions run as chains of kernels; each reads and writes whole tensors. */
export const elementwiseNormOverhead = stageRule(
  {
    id: 'elementwise_norm_overhead',
    title: 'Unfused elementwise operations and norms',
    docs: {
      finds:
        'Norms, activations and additions run as chains of kernels that each read and write whole tensors.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: 'The time of each chain minus about the time of its longest kernel; low end: 70 % of that.',
      change: 'Compile the model, or call fused operators for norm, rotary embedding and activation.',
      withheld: 'less than 5 % of the stage is affected',
    },
    references: [
      {
        title: 'torch.compile',
        url: 'https://docs.pytorch.org/docs/stable/torch.compiler.html',
      },
      {
        title: 'Making Deep Learning Go Brrrr From First Principles: bandwidth and fusion',
        url: 'https://horace.io/brrr_intro.html',
      },
    ],
  },
  async (context, stage) => {
    const sequence = await stepSequence(context, stage.kind);
    const factor = instanceFactor(sequence, stage.compute_ms);
    const chains = chainsOf(sequence, stage.kind);
    const saved = (chains.reduce((sum, chain) => sum + chain.saved_ns, 0) * factor) / 1e6;
    const time =
      (chains.flatMap(({ kernels }) => kernels).reduce((sum, { dur_ns }) => sum + dur_ns, 0) * factor) / 1e6;
    if (saved < minShare * stage.wall_ms) {
      return `elementwise kernels and norms in ${plural(chains.length, 'chain')} take ${part(time, stage.wall_ms)}; fusing them would save ${part(saved, stage.wall_ms)}`;
    }
    return finding(context, stage, { chains, saved, time });
  },
);

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { chains, saved, time }: { chains: Chain[]; saved: number; time: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { framework } = await programOf(context);
  const n = chains.reduce((sum, { kernels }) => sum + kernels.length, 0);
  const longest = chains.toSorted((a, b) => b.kernels.length - a.kernels.length)[0]!;
  const { evidence } = await context.evidence<{ kernel: string; ms: number }>(
    `SELECT coalesce(name, short_name) AS kernel, class, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND class IN ('elementwise', 'norm', 'copy', 'quantization') GROUP BY ALL ORDER BY ms DESC`,
    () =>
      longest.kernels.length * chains.length === n
        ? `${plural(chains.length, 'chain')} of ${longest.kernels.length} kernels in ${instanceWord(kind)}`
        : `${plural(chains.length, 'chain')} in ${instanceWord(kind)}, of ${plural(n / chains.length, 'kernel')} on average; the longest of ${longest.kernels.length}`,
  );
  return {
    stage: kind,
    title: (share) =>
      `Unfused operations: ${count(n)} ${joinWithAnd(classesOf(chains))} kernels in ${plural(chains.length, 'chain')} cost ${share} of ${everyInstance(kind)}`,
    at_stake_ms: saved,
    cause: `Between its GEMMs, ${instanceWord(kind)} runs chains of elementwise kernels and norms for ${ms(time)}. Each kernel reads and writes the whole tensor; one fused kernel per chain would do so once.`,
    change: framework ? engineChanges[framework] : programChange,
    launches: n - chains.length,
    gain: gainOf(
      wall,
      saved,
      'One fused kernel per chain takes as long as its longest kernel, or 75 % of that if the chain computes in float32 between 16-bit tensors.',
      { high_ms: Math.min(time, 1.15 * saved), what_if: 'fused-elementwise' },
    ),
    confidence: 'medium',
    bars: classBars(context, kind, ['elementwise', 'norm', 'copy', 'quantization']),
    evidence: [evidence],
    check: checkAgain,
  };
}

/** Labels of the classes of the kernels in chains, longest first. */
function classesOf(chains: readonly Chain[]): string[] {
  const times = new Map<string, number>();
  for (const { class: opClass, dur_ns } of chains.flatMap(({ kernels }) => kernels))
    times.set(opClass, (times.get(opClass) ?? 0) + dur_ns);
  return [...times].toSorted(([, a], [, b]) => b - a).map(([opClass]) => classLabel(opClass));
}

const programChange: FoundDraft['change'] = {
  kind: 'code',
  text: 'Compile the model, so that each chain becomes one kernel, or call fused operators for norm, rotary and activation.',
  example: 'model.forward = torch.compile(model.forward)  # or F.rms_norm, flash-attn and Liger kernels',
};

/** Engines already fuse single operations; their own switches fuse the rest. */
const engineChanges: Record<Framework, FoundDraft['change']> = {
  vllm: {
    kind: 'flag',
    text: 'Let vLLM compile the model: run it without --enforce-eager.',
    example: '-O3',
  },
  sglang: {
    kind: 'flag',
    text: 'Let SGLang fuse query and key norms with the rotary embedding (if the model has them), or compile the model for small batches.',
    example: '--enable-fused-qk-norm-rope; --enable-torch-compile',
  },
  tensorrt_llm: {
    kind: 'config',
    text: 'Let TensorRT-LLM compile the model.',
    example: 'torch_compile_config: {enable_fullgraph: true}',
  },
};
