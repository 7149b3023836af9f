import { stepKindsSql } from '../../model/record.js';
import type { SessionDatabase } from '../../session/query.js';
import { flopOf, gemmOperators, operatorShape, operatorType } from '../gemms/shape.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Executed GEMMs of one step or of a mean step. */
export interface ExecutedGemms {
  flops: number;
  flops_by_dtype: Map<PeakDType, number>;
  /** FLOPs by number of output features; that of the vocabulary is a lm_head. */
  flopsByWidth: Map<number, number>;
  /** Attention ran as one operator, without shapes of its GEMMs. */
  fusedAttention: boolean;
  /** Time of GEMM kernels, and of those with a known shape, ns; 0 without kernels. */
  gemm_ns: number;
  known_ns: number;
}

export const noGemms = (): ExecutedGemms => ({
  flops: 0,
  flops_by_dtype: new Map(),
  flopsByWidth: new Map(),
  fusedAttention: false,
  gemm_ns: 0,
  known_ns: 0,
});

/** flash, memory-efficient, cuDNN, paged … attention. The math backend consists of separate GEMMs. */
const fusedAttentionName =
  /(flash|efficient|cudnn|fused|unified|varlen|paged|fmha)\w*att|att\w*(flash|fmha|paged)|flash_attn|fmha/i;

/** GEMMs of every step, from the operators' input shapes. Needs the views of traceScope. */
export async function readExecutedByStep(database: SessionDatabase): Promise<Map<number, ExecutedGemms>> {
  const names = gemmOperators.map((name) => `'${name}'`).join(', ');
  // aten::linear counts only if it launched kernels itself (gemms/profiler-shapes.ts).
  const rows = await database.query<{
    step_id: number;
    name: string;
    input_shapes: string;
    input_types: string | null;
    calls: number;
  }>(
    `SELECT step_id, name, input_shapes, input_types, count(*) AS calls FROM phase_ops
     WHERE step_id IS NOT NULL AND input_shapes IS NOT NULL
       AND (name ILIKE '%att%' OR name ILIKE '%fmha%' OR (name IN (${names})
         AND (name <> 'aten::linear' OR op_id IN (SELECT op_id FROM rank_kernels WHERE op_id IS NOT NULL))))
     GROUP BY ALL`,
  );
  const gemmsByStep = new Map<number, ExecutedGemms>();
  const gemmsOf = (step: number): ExecutedGemms => {
    const stepGemms = gemmsByStep.get(step) ?? noGemms();
    gemmsByStep.set(step, stepGemms);
    return stepGemms;
  };
  for (const { step_id, name, input_shapes, input_types, calls } of rows) {
    const shape = operatorShape(name, input_shapes);
    if (shape) addGemm(gemmsOf(step_id), shape.n, flopOf(shape) * calls, operatorType(name, input_types));
    else if (fusedAttentionName.test(name)) gemmsOf(step_id).fusedAttention = true;
  }
  const covered = await database.query<{ step_id: number; gemm_ns: number; known_ns: number }>(
    `SELECT step_id, sum(dur_ns)::DOUBLE AS gemm_ns,
            coalesce(sum(dur_ns) FILTER (op_id IN (
              SELECT op_id FROM rank_ops WHERE op_id IS NOT NULL AND input_shapes IS NOT NULL AND name IN (${names}))), 0)::DOUBLE AS known_ns
     FROM phase_kernels WHERE class = 'gemm' AND step_id IS NOT NULL GROUP BY step_id`,
  );
  for (const { step_id, gemm_ns, known_ns } of covered)
    Object.assign(gemmsOf(step_id), { gemm_ns, known_ns });
  return gemmsByStep;
}

function addGemm(to: ExecutedGemms, width: number, flops: number, dtype: string | null): void {
  const type = (dtype ?? 'unknown').replace(/^(float8).*/, '$1') as PeakDType;
  to.flops += flops;
  to.flops_by_dtype.set(type, (to.flops_by_dtype.get(type) ?? 0) + flops);
  to.flopsByWidth.set(width, (to.flopsByWidth.get(width) ?? 0) + flops);
}

/** Mean over steps. */
export function meanExecuted(steps: readonly ExecutedGemms[]): ExecutedGemms {
  const mean = noGemms();
  const share = 1 / steps.length;
  for (const step of steps) {
    mean.flops += step.flops * share;
    for (const key of ['flops_by_dtype', 'flopsByWidth'] as const) {
      const sums = mean[key] as Map<unknown, number>;
      for (const [name, flops] of step[key]) sums.set(name, (sums.get(name) ?? 0) + flops * share);
    }
    mean.fusedAttention ||= step.fusedAttention;
    mean.gemm_ns += step.gemm_ns * share;
    mean.known_ns += step.known_ns * share;
  }
  return mean;
}

/** Size of a step: batch, and new tokens over the batch. */
interface StepSize {
  batch_size: number;
  new_tokens: number;
}

/**
 * GEMMs of a mean step from cuBLAS and cuBLASLt logs of executions with the same steps. A GEMM belongs to a step with as
 * many new tokens as it has rows; a batched GEMM has the rows of one sequence. cuBLAS calls cuBLASLt, so both logs may
 * have the same calls: for each shape the log with more of them counts.
 * @returns null if no log has these stages or a GEMM of them, or stages of two kinds have equally many rows
 */
export async function readExecutedByLog(
  database: SessionDatabase,
  kind: string,
  { batch_size, new_tokens }: StepSize,
): Promise<ExecutedGemms | null> {
  const stages = await database.query<{ execution_id: string; kind: string; new_tokens: number; n: number }>(
    `SELECT execution_id, kind, new_tokens, count(*) AS n FROM stages
     WHERE execution_id IN (SELECT DISTINCT execution_id FROM gemms) AND kind IN ${stepKindsSql}
     GROUP BY ALL`,
  );
  const sameSize = stages.find((stage) => stage.kind === kind && stage.new_tokens === new_tokens);
  if (
    !sameSize ||
    stages.some((stage) => stage.kind !== kind && (stage.new_tokens ?? new_tokens) === new_tokens)
  )
    return null;
  const rows = await database.query<{
    n: number;
    flops: number;
    dtype: string | null;
    calls: number;
  }>(
    `WITH shapes AS (
       SELECT capture_id, m, n, k, coalesce(batch, 1) AS batch, dtype, sum(coalesce(calls, 1)) AS calls FROM gemms
       WHERE execution_id = $1 AND m IS NOT NULL AND n IS NOT NULL AND k IS NOT NULL GROUP BY ALL)
     SELECT n, 2.0 * m * n * k * batch AS flops, dtype, max(calls) AS calls FROM shapes
     WHERE (batch = 1 AND m = ${new_tokens}) OR (batch > 1 AND m = ${new_tokens / batch_size}) GROUP BY m, n, k, batch, dtype`,
    [sameSize.execution_id],
  );
  if (rows.length === 0) return null;
  const gemms = noGemms();
  for (const { n, flops, dtype, calls } of rows) addGemm(gemms, n, (flops * calls) / sameSize.n, dtype);
  // A batched GEMM with one sequence's rows is unfused attention; without one, attention was fused.
  const [batched] = await database.query<{ n: number }>(
    `SELECT count(*) AS n FROM gemms WHERE execution_id = $1 AND batch > 1 AND m = ${new_tokens / batch_size} AND k > 1`,
    [sameSize.execution_id],
  );
  gemms.fusedAttention = (batched?.n ?? 0) === 0;
  return gemms;
}
