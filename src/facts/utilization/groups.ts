import type { PhaseKind } from '../../model/documents/trace-phase.js';
import { stepKinds } from '../../model/record.js';
import { addToMean, type ShapeCount, type StageShape } from '../../llm/shape.js';
import { bytesOf, type Work } from '../../llm/work-totals.js';
import type { NecessaryWork, UtilizationStage, UtilizationStep } from '../../model/documents/utilization.js';
import { figure, mapFigure, missing, type Figure, type MissingFigure } from '../../model/figure.js';
import { mean } from '../../model/statistics.js';
import type { SessionDatabase } from '../../session/query.js';
import { necessaryOps, type WorkloadModel } from '../model-work.js';
import { meanOverLaunches } from '../statistics.js';
import { readExecutedWork } from './executed-work.js';
import type { SessionModel } from './model.js';
import type { UtilizationRoofs } from './roofs.js';
import { stageShares, workingSetBytes } from './stage.js';
import type { SizedStep } from './sizes.js';
import type { StageContext } from './stage-context.js';
import { yieldedTokens } from './yielded-tokens.js';

const maxSteps = 512;
/** Maximum shapes of a stage computed individually. Above it, decode steps use their mean context. */
const maxShapes = 1024;
const workSource = 'model arithmetic, necessary operations (docs/concepts/llm-arithmetic.md)';

/**
 * Groups steps by kind (in the order of `stepKinds`), batch size and point, then in order of their first step. A mean over
 * mixed steps is meaningless.
 */
export function stepGroups(
  steps: readonly SizedStep[],
  kinds: readonly PhaseKind[] = stepKinds,
): SizedStep[][] {
  const groups = new Map<string, SizedStep[]>();
  for (const kind of kinds) {
    for (const step of steps) {
      if (step.kind !== kind) continue;
      const key = [kind, step.point, step.batch_size].join(' ');
      const group = groups.get(key);
      if (group) group.push(step);
      else groups.set(key, [step]);
    }
  }
  return [...groups.values()];
}

/**
 * Shape of each sequence of a step, or of the mean one; missing if sizes are unknown, or parts of prompts differ. Prompts of different
 * lengths count with their mean length: their attention needs more, because it grows with the square, so the work is a lower limit.
 */
export function shapeOf(step: SizedStep): StageShape | MissingFigure {
  const { kind, batch_size: batch, new_tokens: tokens, context_tokens_sum: context } = step;
  if (kind === 'mixed') {
    return missing('mixed_steps', 'a step with prompts and decoding sequences has no single shape');
  }
  if (batch === null || tokens === null || context === null) {
    if (step.steps_elsewhere !== null) {
      return missing(
        'other_step_count',
        `this capture has ${step.steps_here} ${kind} steps and the capture with their sizes has ${step.steps_elsewhere}, so they cannot be matched (--batch-size and --input-len give the sizes)`,
      );
    }
    const what = batch === null ? 'batch size' : tokens === null ? 'number of new tokens' : 'context';
    return missing(
      'unknown_sizes',
      `the ${what} is not recorded in stages, operators or the run (set it with --batch-size and --input-len)`,
    );
  }
  const { source } = step;
  if (source && 'reason' in source) return source;
  // The tokens of a call of both are those of encoder and decoder, its context the decoder's.
  const newTokens = (source?.step === 'encode-and-decode' ? context : tokens) / batch;
  const contextTokens = context / batch - newTokens;
  const arePrompts = kind === 'prefill' && contextTokens === 0;
  if (!(arePrompts || Number.isInteger(newTokens)) || newTokens < 1 || contextTokens < 0) {
    return missing(
      'unequal_sequences',
      `${tokens} new tokens of ${batch} sequences (context ${context}) are not sequences of equal length`,
    );
  }
  const phase = kind === 'prefill' ? 'prefill' : 'decode';
  return { phase, batchSize: batch, newTokens, contextTokens, ...(source && { source }) };
}

export async function stageOf(
  database: SessionDatabase,
  group: SizedStep[],
  context: StageContext,
): Promise<UtilizationStage> {
  const { executionId, timeFrom, profiled, model, roofs } = context;
  const first = group[0]!;
  const time = meanOverLaunches(
    group.map(({ pid, wall_ns }) => ({ launch: pid, value: wall_ns / 1e6 })),
    'ms',
    timeFrom,
  );
  const tokens = meanOf(group, ({ new_tokens }) => new_tokens);
  const attended = meanOf(group, ({ context_tokens_sum }) => context_tokens_sum);
  const yielded = yieldedTokens({ ...first, new_tokens: tokens, context_tokens_sum: attended });
  const ops = 'model' in model ? meanOps(group, model.model) : model;
  const known = 'reason' in ops ? null : ops;
  const missingOps = 'reason' in ops ? ops : null;
  const work = known && totalsOf(known);
  const shares =
    work && 'model' in model
      ? stageShares(work, time, workingSetOf(model.model, first, attended ?? 0), roofs)
      : noShares(missingOps!);
  return {
    execution_id: executionId,
    kind: first.kind,
    batch_size: first.batch_size,
    point: first.point,
    steps: group.length,
    time_ms: time,
    profiled,
    new_tokens: tokens,
    context_tokens_sum: attended,
    sizes_from: [...new Set(group.map(({ from }) => from))].join('; '),
    tokens_per_s:
      yielded === null
        ? missing('unknown_sizes', 'the number of new tokens is not known')
        : mapFigure(time, 'tok/s', 'new tokens / time', (ms) => (1e3 * yielded) / ms),
    flops: work ? figure(work.flops, 'FLOP', workSource) : missingOps!,
    bytes: work ? figure(work.bytes_total, 'B', workSource) : missingOps!,
    ...shares,
    work: known ?? [],
    executed: await readExecutedWork(database, group, known, time, context),
  };
}

/** The first steps, each with its work. */
export function stepRows(
  group: readonly SizedStep[],
  stage: UtilizationStage,
  model: SessionModel | MissingFigure,
  roofs: UtilizationRoofs,
): UtilizationStep[] {
  if ('reason' in model) return [];
  return group.slice(0, maxSteps).flatMap((step) => {
    const shape = shapeOf(step);
    if ('reason' in shape) return [];
    const work = totalsOf(necessaryOps(model.model, shape).map((op) => ({ ...op, bytes: bytesOf(op) })));
    const time = figure(step.wall_ns / 1e6, 'ms', 'step');
    const { mfu, mbu } = stageShares(
      work,
      time,
      workingSetOf(model.model, step, step.context_tokens_sum!),
      roofs,
    );
    return [
      {
        iteration: step.iteration,
        step_index: step.step_index,
        wall_ns: step.wall_ns,
        new_tokens: step.new_tokens!,
        context_tokens_sum: step.context_tokens_sum!,
        flops: work.flops,
        bytes: work.bytes_total,
        mfu: stage.mfu.value === null ? null : mfu.value,
        mbu: stage.mbu.value === null ? null : mbu.value,
      },
    ];
  });
}

function workingSetOf(model: WorkloadModel, { batch_size }: SizedStep, attended: number): number {
  const batch = batch_size ?? 1;
  return workingSetBytes(model, batch, attended / batch);
}

const meanOf = (group: readonly SizedStep[], value: (step: SizedStep) => number | null): number | null =>
  group.some((step) => value(step) === null) ? null : mean(group.map((step) => value(step)!));

/** Operations of a mean step, by name. */
function meanOps(group: readonly SizedStep[], model: WorkloadModel): NecessaryWork[] | MissingFigure {
  const counts = new Map<string, ShapeCount>();
  for (const step of group) {
    const shape = shapeOf(step);
    if ('reason' in shape) return shape;
    const key = `${shape.newTokens} ${shape.contextTokens} ${shape.source?.step} ${shape.source?.tokens}`;
    const known = counts.get(key);
    if (known) known.steps++;
    else counts.set(key, { shape, steps: 1 });
  }
  let shapes = [...counts.values()];
  const [firstShape] = shapes;
  if (shapes.length > maxShapes && firstShape!.shape.phase === 'decode') {
    shapes = meanShapes(shapes);
  }
  const byName = new Map<string, NecessaryWork>();
  for (const { shape, steps } of shapes) {
    const share = steps / group.length;
    for (const op of necessaryOps(model, shape)) {
      const key = `${op.name} ${op.dtype}`;
      const row = byName.get(key) ?? {
        name: op.name,
        class: op.class,
        dtype: op.dtype,
        ops: 0,
        flops: 0,
        bytes: 0,
      };
      byName.set(key, row);
      if (shape === shapes[0]!.shape) row.ops++;
      row.flops += op.flops * share;
      row.bytes += bytesOf(op) * share;
    }
  }
  return [...byName.values()];
}

/** One shape per step of the source, each with mean lengths, in which a decode step's work is linear. */
function meanShapes(shapes: readonly ShapeCount[]): ShapeCount[] {
  const means = new Map<string | undefined, ShapeCount>();
  for (const counted of shapes) {
    const mean = means.get(counted.shape.source?.step);
    if (mean) addToMean(mean, counted);
    else means.set(counted.shape.source?.step, { ...counted });
  }
  return [...means.values()];
}

type Totals = Pick<Work, 'flops' | 'flops_by_dtype' | 'bytes_total'>;

export function totalsOf(ops: readonly { dtype: string; flops: number; bytes: number }[]): Totals {
  const totals: Totals = { flops: 0, flops_by_dtype: {}, bytes_total: 0 };
  const byType = totals.flops_by_dtype as Record<string, number>;
  for (const { dtype, flops, bytes } of ops) {
    totals.flops += flops;
    totals.bytes_total += bytes;
    if (flops > 0) byType[dtype] = (byType[dtype] ?? 0) + flops;
  }
  return totals;
}

function noShares(
  why: MissingFigure,
): Pick<
  UtilizationStage,
  'peak_flops_per_s' | 'peak_bandwidth_bytes_per_s' | 'mfu' | 'mbu' | 'bound' | 'roof_ms' | 'roof_share'
> {
  const missingFigure: Figure = why;
  return {
    peak_flops_per_s: missingFigure,
    peak_bandwidth_bytes_per_s: missingFigure,
    mfu: missingFigure,
    mbu: missingFigure,
    bound: null,
    roof_ms: missingFigure,
    roof_share: missingFigure,
  };
}
