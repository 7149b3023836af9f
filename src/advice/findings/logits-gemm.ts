import { boundOf } from '../../llm/utilization.js';
import { totalWork } from '../../llm/work-totals.js';
import { necessaryOps } from '../../facts/model-work.js';
import { peaksOf } from '../../facts/roofs.js';
import type { StageShape } from '../../llm/shape.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';
import { stageShapes, type ShapeGroup } from './stage-shape.js';
import { instanceFactor, stepSequence } from './step-sequence.js';

/** Lower bound on the time of the GEMM that computes the logits. */
interface LogitsLimit {
  shape: StageShape;
  /** Time to move the bytes of the GEMM once at the roofline bandwidth, ms: its weights, and few others. */
  read_ms: number;
  /** Roofline time of the GEMM for this many rows, ms. */
  limitMs(rows: number): number;
}

/** The last GEMM of the steps of one size, which computes the logits; times per mean step of this size. */
export interface LogitsGemm extends LogitsLimit {
  /** Share of these steps in all of the stage. */
  share: number;
  ms: number;
  /** Time of the kernels after it, ms. */
  after_ms: number;
}

const unknownSizes = 'the model and the size of its steps are not known';

/**
 * @param shape of the steps; null: not known
 * @returns the limit; a reason if the model, the shape or the peaks of the device are unknown
 */
export function logitsLimit(
  { model, roofs }: FindingContext,
  shape: StageShape | null,
): LogitsLimit | string {
  if (!('architecture' in model) || !roofs || !shape) return unknownSizes;
  const head = necessaryOps(model, shape).find(({ name }) => name === 'lm_head');
  if (!head) return 'the model has no LM head';
  const limit = boundOf(
    totalWork([head]),
    peaksOf((dtype) => roofs.roofFlops(dtype)),
    roofs.roofBandwidth.value,
  );
  if ('reason' in limit) return 'the peaks of the device are not known';
  return {
    shape,
    read_ms: limit.memory_s * 1e3,
    limitMs: (rows) => 1e3 * Math.max(limit.roofline_s, (limit.compute_s * rows) / shape.batchSize),
  };
}

/** Minimum share of the steps of a size to be looked at. */
const minSteps = 0.1;

/** @returns the GEMM of each size of the stage, the most common first; a reason if it has none or its limit is unknown */
export async function logitsGemms(
  context: FindingContext,
  stage: StageFacts,
): Promise<readonly LogitsGemm[] | string> {
  const groups = await stageShapes(context, stage.kind);
  const sum = (value: (group: ShapeGroup) => number): number =>
    groups.reduce((total, group) => total + value(group), 0);
  const [steps, wall] = [sum((group) => group.steps), sum(({ wall_ns: ns }) => ns)];
  const gemms: LogitsGemm[] = [];
  for (const group of groups.filter((one) => one.steps >= minSteps * steps)) {
    const limit = logitsLimit(context, group.shape);
    if (typeof limit === 'string') return limit;
    const sequence = await stepSequence(context, stage.kind, group.stage_ids);
    const index = sequence.findLastIndex(({ class: opClass }) => opClass === 'gemm');
    if (index < 0) continue;
    const share = group.steps / steps;
    const factor = instanceFactor(sequence, (stage.compute_ms * group.wall_ns) / wall / share) / 1e6;
    gemms.push({
      ...limit,
      share,
      ms: sequence[index]!.dur_ns * factor,
      after_ms: sequence.slice(index + 1).reduce((total, { dur_ns }) => total + dur_ns, 0) * factor,
    });
  }
  if (gemms.length > 0) return gemms;
  return groups.length === 0 ? unknownSizes : 'it has no LM head';
}

/**
 * The sizes that a rule holds for, as one: gain and time of the mean step, and the size with the largest gain.
 * @param gainOf ms per step of a size; null: the rule does not hold for it
 */
export function gainOfGemms(
  gemms: readonly LogitsGemm[],
  gainOf: (gemm: LogitsGemm) => number | null,
): { gain: number; gemm_ms: number; after_ms: number; largest: LogitsGemm } | null {
  const found = gemms.flatMap((gemm) => {
    const gain = gainOf(gemm);
    return gain === null ? [] : [{ gemm, gain: gain * gemm.share }];
  });
  const [largest] = found.toSorted((a, b) => b.gain - a.gain);
  if (!largest) return null;
  const mean = (value: (gemm: LogitsGemm) => number): number =>
    found.reduce((sum, { gemm }) => sum + value(gemm) * gemm.share, 0);
  return {
    gain: found.reduce((sum, { gain }) => sum + gain, 0),
    gemm_ms: mean(({ ms }) => ms),
    after_ms: mean(({ after_ms: after }) => after),
    largest: largest.gemm,
  };
}

/** SQL of the GEMM kernels of a stage, ordered by their longest launch. */
export const longestGemmsSql = ({ kind, instances }: StageFacts): string =>
  `SELECT coalesce(name, short_name) AS kernel, class, round(count(*) / ${instances}, 2) AS per_instance, round(max(dur_ns) / 1e3, 2) AS longest_us
   FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'gemm' GROUP BY ALL ORDER BY longest_us DESC`;
