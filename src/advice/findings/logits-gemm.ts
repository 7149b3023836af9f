import { boundOf } from '../../llm/utilization.js';
import { totalWork } from '../../llm/work-totals.js';
import { necessaryOps } from '../../facts/model-work.js';
import { peaksOf } from '../../facts/roofs.js';
import type { StageShape } from '../../llm/shape.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';
import { stageShape } from './stage-shape.js';
import { instanceFactor, stepSequence } from './step-sequence.js';

/** Lower bound on the time of the GEMM that computes the logits. */
interface LogitsLimit {
  shape: StageShape;
  /** Time to move the bytes of the GEMM once at the roofline bandwidth, ms: its weights, and few others. */
  read_ms: number;
  /** Roofline time of the GEMM for this many rows, ms. */
  limitMs(rows: number): number;
}

/** The last GEMM of a stage, which computes the logits; times per mean instance. */
interface LogitsGemm extends LogitsLimit {
  ms: number;
  /** Time of the kernels after it, ms. */
  after_ms: number;
}

/** @returns the limit; a reason if the model, the sizes of the stage or the peaks of the device are unknown */
export async function logitsLimit(context: FindingContext, stage: StageFacts): Promise<LogitsLimit | string> {
  const { model, roofs } = context;
  const shape = await stageShape(context, stage.kind);
  if (!('architecture' in model) || !roofs || !shape)
    return 'the model and the size of its steps are not known';
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

/** @returns the GEMM; a reason if the stage has none or its limit is unknown */
export async function logitsGemm(context: FindingContext, stage: StageFacts): Promise<LogitsGemm | string> {
  const limit = await logitsLimit(context, stage);
  if (typeof limit === 'string') return limit;
  const sequence = await stepSequence(context, stage.kind);
  const index = sequence.findLastIndex(({ class: opClass }) => opClass === 'gemm');
  if (index < 0) return 'it has no LM head';
  const factor = instanceFactor(sequence, stage.compute_ms) / 1e6;
  return {
    ...limit,
    ms: sequence[index]!.dur_ns * factor,
    after_ms: sequence.slice(index + 1).reduce((sum, { dur_ns }) => sum + dur_ns, 0) * factor,
  };
}

/** SQL of the GEMM kernels of a stage, ordered by their longest launch. */
export const longestGemmsSql = ({ kind, instances }: StageFacts): string =>
  `SELECT coalesce(name, short_name) AS kernel, class, round(count(*) / ${instances}, 2) AS per_instance, round(max(dur_ns) / 1e3, 2) AS longest_us
   FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'gemm' GROUP BY ALL ORDER BY longest_us DESC`;
