import { inList } from '../finding-tables.js';
import { gainOf } from '../gain.js';
import { deviceOf, factOf } from '../../../facts/device.js';
import { necessaryOps } from '../../../facts/model-work.js';
import { wavesOf } from '../launch-waves.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { type StageFacts, stageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import {
  barsOf,
  checkAgain,
  classBars,
  type StageOutcome,
  minShare,
  noTimeline,
  outcomeOf,
} from '../stage-rule.js';
import { instanceWord, count, everyInstance, ms, part } from '../words.js';
import { formatNumber, plural, formatPercent } from '../../../vocabulary/format.js';

/** Launch cost dominates shorter GEMMs. */
const minNs = 10_000;
/** Share of its roof that a GEMM with aligned sizes reaches (70 to 75 % in 16 bits on an H200). */
const alignedEfficiency = 0.7;
/** Without a model: share of the time that remains if a kernel that loads this many bytes at once loaded 16. */
const remainingByBytes: Record<number, number> = { 2: 0.4, 4: 0.55, 8: 0.8 };
const bytesOf: Record<string, number> = { fp16: 2, bf16: 2, fp8: 1, int8: 1, fp32: 4, tf32: 4, fp64: 8 };

interface GemmKernel {
  name: string;
  dtype: string | null;
  grid: string | null;
  block: string | null;
  registers: number | null;
  shared_mem_bytes: number | null;
  n: number;
  /** Per mean instance. */
  ms: number;
}

/** GEMM sizes that tensor cores cannot load in 16 bytes, or tiles that leave most of the last wave empty. */
export const gemmShape: Rule = {
  id: 'gemm_shape',
  title: 'Shapes of GEMMs',
  docs: {
    finds:
      'Matrix sizes that tensor cores cannot load in 16 bytes, or tiles that leave most of the last wave of multiprocessors empty.',
    needs: "a GPU timeline: nsys, or PyTorch's profiler; with the model and the batch the gain is more exact",
    gain: 'Misaligned: the same GEMMs at 70 % of their roof, without a model by the bytes that a kernel loads at once. Waves: the empty part of the last wave.',
    change: 'Pad the dimension to a multiple of 64, or choose rows and tiles that fill whole waves.',
    withheld: 'less than 5 % of the stage is affected, or GEMMs shorter than 10 µs',
  },
  references: [
    {
      title: "NVIDIA: Matrix Multiplication Background User's Guide",
      url: 'https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html',
    },
  ],
  async find(context) {
    const outcomes: StageOutcome[] = [];
    for (const stage of await stageFacts(context)) {
      const gemms = await gemmsOf(context, stage);
      for (const judge of [findMisaligned, findQuantized])
        outcomes.push([stage.kind, await judge(context, stage, gemms)]);
    }
    return outcomeOf(outcomes, noTimeline);
  },
};

async function gemmsOf({ database }: FindingContext, { kind, instances }: StageFacts): Promise<GemmKernel[]> {
  return database.query<GemmKernel>(
    `SELECT name, dtype, grid, "block", registers, shared_mem_bytes, count(*) / ${instances} AS n, sum(exclusive_ns) / 1e6 / ${instances} AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'gemm' AND dur_ns >= ${minNs} GROUP BY ALL ORDER BY ms DESC LIMIT 200`,
  );
}

/** Bytes that a kernel loads at once, from its name; null if the name has none. */
function loadBytes({ name, dtype }: GemmKernel): number | null {
  const elements = /_align(\d+)\b/.exec(name)?.[1] ?? /_ldg(\d+)_/.exec(name)?.[1];
  const size = bytesOf[dtype ?? ''] ?? null;
  return elements === undefined || size === null ? null : Number(elements) * size;
}

async function findMisaligned(
  context: FindingContext,
  stage: StageFacts,
  gemms: readonly GemmKernel[],
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const misaligned = gemms.filter((gemm) => (loadBytes(gemm) ?? 16) < 16);
  const time = misaligned.reduce((sum, gemm) => sum + gemm.ms, 0);
  if (time < minShare * wall) return `GEMMs that load less than 16 bytes at once take ${part(time, wall)}`;
  const byName = misaligned.reduce(
    (sum, gemm) => sum + gemm.ms * (remainingByBytes[loadBytes(gemm)!] ?? 0.5),
    0,
  );
  const byModel = await alignedMs(context, stage, time, gemms);
  const after = Math.min(time, byModel ?? byName);
  const stake = time - after;
  if (stake < minShare * wall)
    return `misaligned GEMMs would be ${part(stake, wall)} faster with aligned sizes`;
  const smallest = Math.min(...misaligned.map((gemm) => loadBytes(gemm)!));
  const { evidence } = await gemmEvidence(
    context,
    stage,
    misaligned,
    () => `${misaligned[0]!.name.slice(0, 120)}: loads ${plural(smallest, 'byte')} at once`,
  );
  return {
    stage: kind,
    title: (share) =>
      `Misaligned GEMMs: slow kernels cost ${share} of ${everyInstance(kind)}, because sizes are not multiples of 16 bytes`,
    at_stake_ms: stake,
    cause: `In ${instanceWord(kind)} GEMMs run for ${ms(time)} in kernels that load ${plural(smallest, 'byte')} at once: a matrix dimension (hidden size, intermediate size, vocabulary, tokens) is not a multiple of 16 bytes, so the library cannot use its fast kernels.`,
    change: {
      kind: 'code',
      text: 'Pad the dimension to a multiple of 64 elements (zero rows and columns), once in the weights and not at every use.',
      example: 'model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64)  # for the vocabulary',
    },
    gain: gainOf(
      wall,
      stake,
      byModel === null
        ? 'Kernels that load 2, 4 and 8 bytes at once take 2.5, 1.8 and 1.25 times as long as those that load 16.'
        : `Aligned GEMMs reach ${formatPercent(alignedEfficiency)} of their roof.`,
      { low_ms: 0.6 * stake, high_ms: Math.min(time, 1.2 * stake) },
    ),
    confidence: 'medium',
    bars: classBars(context, kind, ['gemm']),
    evidence: [evidence],
    check: checkAgain,
  };
}

/** Time of the misaligned GEMMs with aligned sizes: the model's necessary GEMMs at their roof, in proportion. */
async function alignedMs(
  context: FindingContext,
  stage: StageFacts,
  time: number,
  gemms: readonly GemmKernel[],
): Promise<number | null> {
  const { model, roofs } = context;
  const shape = await stageShape(context, stage.kind);
  const bandwidth = roofs?.roofBandwidth.value ?? null;
  if (!('architecture' in model) || !shape || !roofs || bandwidth === null) return null;
  let seconds = 0;
  for (const op of necessaryOps(model, shape).filter(({ class: opClass }) => opClass === 'gemm')) {
    const peak = roofs.roofFlops(op.dtype).value;
    if (peak === null) return null;
    const bytes = Object.values(op.bytes).reduce((sum, value) => sum + value, 0);
    seconds += Math.max(op.flops / peak, bytes / bandwidth) / alignedEfficiency;
  }
  const all = gemms.reduce((sum, gemm) => sum + gemm.ms, 0);
  return all > 0 ? (seconds * 1e3 * time) / all : null;
}

async function findQuantized(
  context: FindingContext,
  stage: StageFacts,
  gemms: readonly GemmKernel[],
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const device = context.scope?.source.focus.device ?? null;
  const sms = deviceOf(context.manifest, device).smCount.value;
  const capability = factOf(context.manifest.hardware, device, 'compute_capability');
  if (sms === null || typeof capability !== 'string') return 'the number of multiprocessors is not known';
  const product = (text: string | null) =>
    (text ?? '').split(',').reduce((size, factor) => size * Number(factor), 1);
  const partlyFilled = gemms.flatMap((gemm) => {
    const launch = {
      blocks: product(gemm.grid),
      threads: product(gemm.block),
      registers: gemm.registers,
      shared_mem_bytes: gemm.shared_mem_bytes,
    };
    const waves = wavesOf(launch, sms, capability);
    return waves && waves.waves > 1 ? [{ gemm, ...waves, blocks: launch.blocks }] : [];
  });
  const stake = partlyFilled.reduce((sum, { gemm, efficiency }) => sum + gemm.ms * (1 - efficiency), 0);
  if (stake < minShare * wall) return `partly filled last waves of GEMMs take ${part(stake, wall)}`;
  const worst = partlyFilled.toSorted(
    (a, b) => b.gemm.ms * (1 - b.efficiency) - a.gemm.ms * (1 - a.efficiency),
  )[0]!;
  const time = partlyFilled.reduce((sum, { gemm }) => sum + gemm.ms, 0);
  const { evidence } = await gemmEvidence(
    context,
    stage,
    partlyFilled.map(({ gemm }) => gemm),
    () =>
      `${worst.blocks} blocks on ${sms} multiprocessors: ${formatNumber(worst.waves)} waves, of which the last is ${part(worst.waves % 1 || 1, 1)} full`,
  );
  return {
    stage: kind,
    title: `Wave quantization: GEMMs of ${worst.blocks} tiles leave ${part(stake, time)} of the GPU idle while they run in ${instanceWord(kind)}`,
    at_stake_ms: stake,
    cause: `${plural(worst.blocks, 'tile')} run in ${plural(Math.ceil(worst.waves), 'wave')} on ${sms} multiprocessors (the work fills ${count(worst.waves)}): the last wave takes as long as a full one. Such GEMMs take ${ms(time)} of ${instanceWord(kind)}.`,
    change: {
      kind: 'code',
      text: 'Choose rows (batch × tokens) or output features so that the tiles fill whole waves, smaller tiles, or a kernel that splits K or keeps blocks resident (stream-K, persistent).',
      example: null,
    },
    gain: gainOf(wall, stake, 'Every wave takes as long as a full one; the same work fits whole waves.', {
      low_ms: 0.5 * stake,
    }),
    confidence: 'medium',
    bars: [...classBars(context, kind, ['gemm']), ...barsOf(context, kind, ['roofline'])],
    evidence: [evidence],
    check: checkAgain,
  };
}

function gemmEvidence(
  context: FindingContext,
  { kind, instances }: StageFacts,
  kernels: readonly GemmKernel[],
  text: () => string,
) {
  const names = [...new Set(kernels.map(({ name }) => name))];
  return context.evidence(
    `SELECT coalesce(name, short_name) AS kernel, dtype, tile, grid, "block", registers, shared_mem_bytes, round(count(*) / ${instances}, 2) AS per_instance,
            round(avg(dur_ns) / 1e3, 2) AS us, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND ${inList(names)} GROUP BY ALL ORDER BY ms DESC`,
    text,
  );
}
