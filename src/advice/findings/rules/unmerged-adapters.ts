import { gainOf } from '../gain.js';
import { stepKinds } from '../../../model/record.js';
import { lowRankGemms } from '../low-rank-gemms.js';
import { findAdapters } from '../operators/adapter-gemms.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceFactor, stepSequence } from '../step-sequence.js';
import { everyInstance, instanceWord, ms, part, plural } from '../words.js';

/** Low-rank adapters are computed next to GEMMs, although they could be merged into the weights. */
export const unmergedAdapters = stageRule(
  {
    id: 'unmerged_adapters',
    title: 'Unmerged adapters',
    docs: {
      finds: 'LoRA adapters are computed next to GEMMs instead of being merged into their weights.',
      needs:
        "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators with shapes of a program without a GPU",
      gain: "The time of the adapters' kernels and of the gaps between them; low end 70 % of it.",
      change: 'Merge the adapters into the weights before inference.',
      withheld: 'less than 5 % of the stage is affected, or fewer than two GEMMs with an adapter',
    },
    references: [
      {
        title: 'Hugging Face PEFT: merge adapters',
        url: 'https://huggingface.co/docs/peft/developer_guides/lora#merge-lora-weights-into-the-base-model',
      },
    ],
  },
  async (context, stage) => {
    // Backward passes have pairs of GEMMs with additions after them too.
    if (!stepKinds.some((kind) => kind === stage.kind)) return 'judged for steps of inference only';
    const sequence = await stepSequence(context, stage.kind);
    const factor = instanceFactor(sequence, stage.compute_ms);
    const gemms = lowRankGemms(sequence);
    const kernels = gemms.flat();
    const kernelsMs = (kernels.reduce((sum, { dur_ns }) => sum + dur_ns, 0) * factor) / 1e6;
    // Gaps after the kernels are removed with them; they are idle time like other gaps of the step.
    const gapsMs =
      (kernels.length * (stage.launch_latency_ms + stage.device_dependency_ms)) / Math.max(1, stage.kernels);
    const time = kernelsMs + gapsMs;
    if (time < minShare * stage.wall_ms)
      return `${plural(gemms.length, 'GEMM')} with low-rank GEMMs after them; these take ${part(time, stage.wall_ms)}`;
    return finding(context, stage, { gemms: gemms.length, kernels: kernels.length, kernelsMs, time });
  },
  findAdapters,
);

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { gemms, kernels, kernelsMs, time }: { gemms: number; kernels: number; kernelsMs: number; time: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const adapters = context.manifest.workload?.model?.facts?.adapters ?? null;
  const { evidence } = await context.evidence<{ kernel: string; ms: number }>(
    `SELECT coalesce(name, short_name) AS kernel, class, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND class IN ('gemm', 'elementwise', 'copy') GROUP BY ALL ORDER BY per_instance DESC, ms DESC`,
    () =>
      `${plural(gemms, 'GEMM')} of ${instanceWord(kind)} followed by two small GEMMs and an addition: ${plural(kernels, 'kernel')}, ${ms(kernelsMs)}`,
  );
  return {
    stage: kind,
    title: (share) =>
      `Unmerged adapters: low-rank GEMMs after ${plural(gemms, 'GEMM')} take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `${plural(gemms, 'GEMM')} of ${instanceWord(kind)} ${gemms === 1 ? 'is' : 'are'} followed by two small GEMMs, a scaling and an addition to the result: low-rank adapters that are computed next to the weights${adapters === null ? '' : ` (the program shows ${adapters.kind} in ${plural(adapters.layers, 'layer')}, ${adapters.merged} merged)`}. Each kernel takes about as long as its launch, however small the adapter.`,
    change: {
      kind: 'code',
      text: 'Merge the adapters into the weights once, before inference. Where requests use different adapters, keep them separate and serve them in one batch (vLLM --enable-lora).',
      example: 'model = model.merge_and_unload()  # PEFT',
    },
    launches: kernels,
    gain: gainOf(wall, time, 'The kernels of the adapters are removed, and no other gets slower.', {
      high_ms: Math.min(wall, 1.15 * time),
    }),
    confidence: adapters !== null && adapters.layers > adapters.merged ? 'high' : 'medium',
    covers: ['half_precision', 'elementwise_norm_overhead', 'casts_and_layout_copies', 'gemm_shape'],
    bars: [
      ...classBars(context, kind, ['gemm', 'elementwise', 'copy', 'quantization']),
      ...(
        context.waterfalls.find((waterfall) => waterfall.kind === kind)?.bars.map(({ id }) => id) ?? []
      ).filter((id) => id === 'launch_latency' || id === 'device_dependency'),
    ],
    evidence: [evidence],
    check: checkAgain,
  };
}
