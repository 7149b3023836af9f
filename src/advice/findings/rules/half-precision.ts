import { gemmTypeSql } from '../../../facts/utilization/roofs.js';
import { gainOf } from '../gain.js';
import { floatStorage } from '../../../llm/storage.js';
import { necessaryOps } from '../../../facts/model-work.js';
import { programOf } from '../framework.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { barsOf, checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural } from '../words.js';
import type { PeakDType } from '../../../hardware/gpu-sheet.js';

/** Fused attention kernels for tensor cores exist for 16 bits, not for float32: 3.7 ms became 0.33 ms on an H200. */
const attentionShare = 0.1;
/** Other kernels move half as many bytes; kernels as short as a launch gain nothing. */
const bytesShare = 0.5;
const shortNs = 3000;

type Wide = 'fp32' | 'tf32' | 'fp64';
const peakNames: Record<Wide, PeakDType> = { fp32: 'float32', tf32: 'tfloat32', fp64: 'float32' };

interface ClassTime {
  class: string;
  dtype: string | null;
  n: number;
  ms: number;
}

/** GEMMs run in float32 or TF32 although 16 bits are enough. */
export const halfPrecision = stageRule(
  {
    id: 'half_precision',
    title: 'float32 although 16 bits are enough',
    docs: {
      finds: 'GEMMs run in float32 or TF32 although 16 bits are enough.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler",
      gain: "The ratio of peaks of the two types for the model's GEMMs, and half the bytes of other kernels; low end 70 % of it.",
      change: 'Load the model in bfloat16 or float16, or use autocast.',
      withheld:
        "less than 5 % of the stage is affected, or less than 20 % of the GEMMs' time is in a wide type",
    },
    references: [
      {
        title: 'PyTorch: numerical accuracy, TensorFloat-32 and reduced precision',
        url: 'https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html',
      },
      {
        title: 'NVIDIA: Train With Mixed Precision',
        url: 'https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html',
      },
    ],
  },
  async (context, stage) => {
    const rows = await context.database.query<ClassTime>(
      `SELECT class, CASE WHEN class = 'gemm' THEN ${gemmTypeSql} END AS dtype, sum(n) / ${stage.instances} AS n, sum(ns) / 1e6 / ${stage.instances} AS ms
       FROM finding_kernels WHERE kind = '${stage.kind}' GROUP BY ALL`,
    );
    const gemms = rows.filter(({ class: opClass }) => opClass === 'gemm');
    const wide = gemms.filter(({ dtype }) => isWide(dtype));
    const time = wide.reduce((sum, row) => sum + row.ms, 0);
    const all = gemms.reduce((sum, row) => sum + row.ms, 0);
    if (time < minShare * stage.wall_ms || time < 0.2 * all) {
      return `${part(time, all)} of the GEMMs' time is in float32, TF32 or float64`;
    }
    return finding(context, stage, { rows, wide, time, isMostlyWide: time > 0.8 * all });
  },
);

const isWide = (dtype: string | null): dtype is Wide => dtype !== null && dtype in peakNames;

async function finding(
  context: FindingContext,
  stage: StageFacts,
  {
    rows,
    wide,
    time,
    isMostlyWide,
  }: { rows: ClassTime[]; wide: ClassTime[]; time: number; isMostlyWide: boolean },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { training } = await programOf(context);
  let after = 0;
  for (const row of wide) after += row.ms * (await ratio(context, stage, row.dtype as Wide));
  // If nearly all GEMMs have this type, the rest of the model has it too.
  let otherMs = 0;
  let othersAfter = 0;
  if (isMostlyWide) {
    for (const row of rows) {
      if (row.class === 'gemm' || (row.ms * 1e6) / Math.max(1, row.n) < shortNs) continue;
      otherMs += row.ms;
      othersAfter += row.ms * (row.class === 'attention' ? attentionShare : bytesShare);
    }
  }
  const gain = time - after + otherMs - othersAfter;
  const names = [
    ...new Set(
      wide.map(({ dtype }) => (dtype === 'tf32' ? 'TF32' : dtype === 'fp64' ? 'float64' : 'float32')),
    ),
  ];
  const { evidence } = await context.evidence<{
    kernel: string;
    dtype: string | null;
    ms: number;
    per_instance: number;
  }>(
    `SELECT coalesce(name, short_name) AS kernel, dtype, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'gemm' GROUP BY ALL ORDER BY ms DESC`,
    (evidenceRows) =>
      evidenceRows
        .slice(0, 2)
        .map(
          (row) =>
            `${row.kernel}${row.dtype === null ? '' : ` (${row.dtype})`}: ${plural(row.per_instance, 'call')}, ${ms(row.ms)}`,
        )
        .join('; '),
  );
  return {
    stage: kind,
    title: (share) =>
      `${names.join(' and ')} instead of 16 bits ${names.length > 1 ? 'cost' : 'costs'} ${share} of ${everyInstance(kind)}`,
    at_stake_ms: gain,
    cause: `In ${instanceWord(kind)} GEMMs run for ${ms(time)} in ${names.join(' and ')}${isMostlyWide ? `, and ${ms(otherMs)} of other kernels move values of 4 bytes` : ''}. ${names.includes('float32') ? 'float32 GEMMs do not use tensor cores. ' : names.includes('TF32') ? 'TF32 has half the rate of 16-bit tensor cores. ' : ''}${training ? 'Training keeps its quality with GEMMs in bfloat16, or in float16 with scaled losses.' : 'Inference keeps its quality in bfloat16 or float16 for all but few models.'}`,
    change: {
      kind: 'code',
      text: training
        ? 'Run forward pass and loss under autocast: bfloat16, or float16 with a gradient scaler if the GPU has no bfloat16.'
        : 'Load and run the model in bfloat16 (float16 if the GPU has no bfloat16).',
      example: training
        ? 'with torch.autocast("cuda", dtype=torch.bfloat16): loss = model(x)'
        : kind === 'outside'
          ? 'model = model.to(torch.bfloat16)'
          : 'model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)  # or model.to(torch.bfloat16)',
    },
    gain: gainOf(
      wall,
      gain,
      'GEMMs scale with the ratio of the peaks or of the bytes, whichever limits each; other kernels take half, attention a tenth.',
      { high_ms: Math.min(time + otherMs, 1.1 * gain), what_if: 'dtype=bfloat16' },
    ),
    confidence: 'medium',
    bars: [
      ...barsOf(context, kind, ['roofline', 'serial']),
      ...classBars(context, kind, ['gemm', 'attention', 'norm', 'elementwise', 'copy', 'embedding']),
    ],
    evidence: [evidence],
    check: checkAgain,
  };
}

/** Time in 16 bits relative to a wider type: from the model's own GEMMs, else by what usually limits the stage. */
async function ratio(context: FindingContext, { kind }: StageFacts, dtype: Wide): Promise<number> {
  const { model, roofs } = context;
  const half = roofs?.roofFlops('bfloat16').value ?? null;
  const wide = roofs?.roofFlops(peakNames[dtype]).value ?? null;
  const compute = half !== null && wide !== null ? Math.min(1, wide / half) : bytesShare;
  const shape = await stageShape(context, kind);
  const bandwidth = roofs?.roofBandwidth.value ?? null;
  if (!('architecture' in model) || !shape || half === null || wide === null || bandwidth === null) {
    return kind === 'prefill' ? compute : bytesShare;
  }
  const time = (type: 'float32' | 'bfloat16', peak: number) =>
    necessaryOps({ architecture: model.architecture, storage: floatStorage(type) }, shape)
      .filter(({ class: opClass }) => opClass === 'gemm')
      .reduce((sum, op) => {
        const bytes = Object.values(op.bytes).reduce((total, value) => total + value, 0);
        return sum + Math.max(op.flops / peak, bytes / bandwidth);
      }, 0);
  const now = time('float32', wide);
  return now > 0 ? Math.min(1, time('bfloat16', half) / now) : compute;
}
