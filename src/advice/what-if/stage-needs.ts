import type { StageShape } from '../../llm/shape.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import type { TraceScope } from '../../facts/trace/scope.js';
import { shapeOf } from '../../facts/utilization/groups.js';
import { readTracedSteps, runSizesOf, withSizes } from '../../facts/utilization/sizes.js';

/** Sizes of a mean instance of each kind of stage of a timeline. Needs the views and windows of the scope. */
export async function tracedShapes(
  { manifest }: Session,
  scope: TraceScope,
): Promise<Map<string, StageShape | MissingFigure>> {
  const run = runSizesOf(manifest.workload, "the run's sizes");
  const shapes = new Map<string, StageShape[] | MissingFigure>();
  for (const step of await readTracedSteps(scope)) {
    const shapesSoFar = shapes.get(step.kind) ?? [];
    if ('reason' in shapesSoFar) continue;
    const shape = shapeOf(withSizes(step, run));
    shapes.set(step.kind, 'reason' in shape ? shape : [...shapesSoFar, shape]);
  }
  return new Map(
    [...shapes].map(([kind, shapes]) => [kind, 'reason' in shapes ? shapes : meanShape(shapes)]),
  );
}

/** An encoder-decoder model computes the source's keys in the first of many decode steps, which the mean leaves out. */
function meanShape(all: readonly StageShape[]): StageShape | MissingFigure {
  const later = all.filter(({ source }) => source?.step !== 'first');
  const shapes = later.length > 0 ? later : all;
  const [first] = shapes;
  if (!first) return missing('no_steps', 'the stage has no steps');
  const kindOf = ({ batchSize, newTokens, source }: StageShape) =>
    [batchSize, newTokens, source?.step, source?.tokens].join(' ');
  if (shapes.some((shape) => kindOf(shape) !== kindOf(first))) {
    return missing('unequal_steps', 'its steps differ in batch or length, so a mean is not meaningful');
  }
  const context = shapes.reduce((sum, { contextTokens }) => sum + contextTokens, 0) / shapes.length;
  return { ...first, contextTokens: context };
}

/** Sizes of a benchmark's point (b<batch>-p<prompt>-o<output>), or of the run. */
export function plannedShape(
  { kind, point }: StageWaterfall,
  workload: Workload,
): StageShape | MissingFigure {
  const planned = /^b(\d+)-p(\d+)-o(\d+)/
    .exec(point ?? '')
    ?.slice(1)
    .map(Number);
  const [batchSize, input, output] = planned ?? [
    workload.batch_size,
    workload.input_len,
    workload.output_len,
  ];
  if (!batchSize || !input) return missing('unknown_sizes', 'the session does not record batch and lengths');
  if (kind === 'prefill') return { phase: 'prefill', batchSize, newTokens: input, contextTokens: 0 };
  // Step i of output − 1 reads a cache of input + i tokens. This is the mean.
  return {
    phase: 'decode',
    batchSize,
    newTokens: 1,
    contextTokens: input + Math.max(0, (output ?? 2) - 2) / 2,
  };
}
