import type { ExecutedWork, NecessaryWork } from '../../model/documents/utilization.js';
import { figure, mapFigure, missing, type Figure, type MissingFigure } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';
import { type ExecutedGemms, readExecutedByLog, meanExecuted, noGemms } from './executed.js';
import type { SizedStep } from './sizes.js';
import type { StageContext } from './stage-context.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';
import { formatFactor, formatPercent } from '../../vocabulary/format.js';

/** Minimum share of GEMM time with known shapes. */
const minCoveredShare = 0.9;
/** Ratios in this range count as equal: rotary tables and GEMMs outside the layers add a little. */
const equalRatios = [0.98, 1.02] as const;

/**
 * Executed FLOPs: Σ 2·M·N·K·batch of the GEMMs with known shapes, plus the model's attention if it ran as one
 * operator. From operators of the same steps, else from cuBLAS logs of equal steps in any execution.
 */
export async function readExecutedWork(
  database: SessionDatabase,
  group: readonly SizedStep[],
  necessary: NecessaryWork[] | null,
  time: Figure,
  context: StageContext,
): Promise<ExecutedWork> {
  const shapes = await readShapes(database, group, context);
  if ('reason' in shapes) return missingWork(shapes);
  const { source, executed } = shapes;
  const covered = executed.gemm_ns > 0 ? executed.known_ns / executed.gemm_ns : null;
  if (covered !== null && covered < minCoveredShare) {
    const why = missing(
      'shapes_incomplete',
      `only ${formatPercent(covered)} of the GEMM kernels' time has a known shape (CUDA graphs and fused kernels have no operators)`,
    );
    return { ...missingWork(why), source, gemm_time_covered: covered };
  }
  const from =
    source === 'operators' ? "operators' input shapes" : 'cuBLAS logs, by rows, over the steps logged';
  const gemm = figure(executed.flops, 'FLOP', `Σ 2·M·N·K·batch: ${from}`);
  if (necessary === null) {
    const unknownWork = missing('unknown_work', "the model's arithmetic is not known");
    return { ...missingWork(unknownWork), source, gemm_flops: gemm, gemm_time_covered: covered };
  }
  const attention = executed.fusedAttention ? sum(necessary.filter((op) => op.class === 'attention')) : 0;
  const flops = executed.flops + attention;
  const ratio = flops / sum(necessary);
  return {
    source,
    gemm_flops: gemm,
    attention_flops: figure(
      attention,
      'FLOP',
      executed.fusedAttention ? 'model arithmetic, causal' : 'its FLOPs are included in those of the GEMMs',
    ),
    flops: figure(flops, 'FLOP', 'GEMMs + attention'),
    mfu: refinedMfu(executed, attention, necessary, time, context),
    over_necessary: figure(ratio, 'ratio', 'executed / necessary FLOPs'),
    gemm_time_covered: covered,
    text: textOf(ratio, executed, necessary, group[0]!, context),
  };
}

async function readShapes(
  database: SessionDatabase,
  group: readonly SizedStep[],
  { traced, executed }: StageContext,
): Promise<{ source: 'operators' | 'gemm-log'; executed: ExecutedGemms } | MissingFigure> {
  const { kind, batch_size, point } = group[0]!;
  const sameStage = traced.filter(
    (step) => step.kind === kind && step.point === point && step.batch_size === batch_size,
  );
  const executedSteps = sameStage.map(({ stage_id }) => executed?.get(stage_id) ?? noGemms());
  if (executedSteps.some(({ flops }) => flops > 0))
    return { source: 'operators', executed: meanExecuted(executedSteps) };
  const tokens = new Set(group.map(({ new_tokens }) => new_tokens));
  const [only] = tokens;
  if (batch_size !== null && tokens.size === 1 && only) {
    const fromLog = await readExecutedByLog(database, kind, { batch_size, new_tokens: only });
    if (fromLog) return { source: 'gemm-log', executed: fromLog };
  }
  return missing(
    'no_gemm_shapes',
    'GEMM shapes of this stage are not known (inferscope run --evaluator torch or --gemm-log records them)',
  );
}

/** Each dtype at its own peak, as in MFU. */
function refinedMfu(
  { flops_by_dtype }: ExecutedGemms,
  attention: number,
  necessary: NecessaryWork[],
  time: Figure,
  { roofs }: StageContext,
): Figure {
  const attentionDtype = necessary.find((op) => op.class === 'attention')?.dtype as PeakDType | undefined;
  const work = new Map(flops_by_dtype);
  if (attention > 0 && attentionDtype) work.set(attentionDtype, (work.get(attentionDtype) ?? 0) + attention);
  let seconds = 0;
  let source = '';
  for (const [dtype, flops] of work) {
    const peak = roofs.peak(dtype);
    if (peak.value === null) return peak;
    seconds += flops / peak.value;
    source = peak.source;
  }
  return mapFigure(
    time,
    'ratio',
    `executed FLOPs / time / peak of each dtype; ${source}`,
    (ms) => seconds / (ms / 1e3),
  );
}

const sum = (ops: readonly NecessaryWork[]): number => ops.reduce((total, { flops }) => total + flops, 0);

function textOf(
  ratio: number,
  executed: ExecutedGemms,
  necessary: NecessaryWork[],
  { batch_size, new_tokens }: SizedStep,
  { model }: StageContext,
): string {
  const factor = formatFactor(ratio);
  if (ratio < equalRatios[0]) {
    return `the shapes add up to ${factor} the necessary FLOPs: some GEMMs have no known shape, or another model ran`;
  }
  if (ratio <= equalRatios[1]) return `the program computes the necessary FLOPs (${factor})`;
  const headFlops = necessary.find(({ name }) => name === 'lm_head')?.flops ?? 0;
  const vocabulary = 'model' in model ? model.model.architecture.vocabSize : 0;
  const extraHead = (executed.flopsByWidth.get(vocabulary) ?? 0) - headFlops;
  const extra = (ratio - 1) * sum(necessary);
  const why =
    extraHead > extra / 2 && (new_tokens ?? 0) > (batch_size ?? 1)
      ? 'logits of every prompt token, although only the last is needed'
      : 'padding, unfused attention over masked keys, or work done twice';
  return `the program computes ${factor} the necessary FLOPs: ${why}`;
}

function missingWork(why: MissingFigure): ExecutedWork {
  return {
    source: null,
    gemm_flops: why,
    attention_flops: why,
    flops: why,
    mfu: why,
    over_necessary: why,
    gemm_time_covered: null,
    text: null,
  };
}
