import { addToMean, type ShapeCount, type StageShape } from '../../llm/shape.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { shapeOf } from '../../facts/utilization/groups.js';
import { readTracedSteps, runSizesOf, withSizes } from '../../facts/utilization/sizes.js';
import type { FindingContext } from './rule.js';

const shapesByContext = new WeakMap<FindingContext, Promise<Map<PhaseKind, StageShape>>>();

/** Batch, new tokens and mean context of the most common steps of a kind; null if not known. */
export async function stageShape(context: FindingContext, kind: PhaseKind): Promise<StageShape | null> {
  const stageShapes = shapesByContext.get(context) ?? readShapes(context);
  shapesByContext.set(context, stageShapes);
  return (await stageShapes).get(kind) ?? null;
}

async function readShapes({ scope, manifest }: FindingContext): Promise<Map<PhaseKind, StageShape>> {
  const shapeByKind = new Map<PhaseKind, StageShape>();
  if (!scope) return shapeByKind;
  const run = runSizesOf(manifest.workload, 'the run');
  const groups = new Map<string, ShapeCount & { kind: PhaseKind }>();
  for (const step of await readTracedSteps(scope)) {
    const shape = shapeOf(withSizes(step, run));
    if ('reason' in shape) continue;
    const key = [step.kind, shape.batchSize, shape.newTokens, shape.source?.step].join(' ');
    const group = groups.get(key);
    if (group) addToMean(group, { shape, steps: 1 });
    else groups.set(key, { kind: step.kind, shape, steps: 1 });
  }
  for (const { kind, shape } of [...groups.values()].toSorted((a, b) => b.steps - a.steps)) {
    if (!shapeByKind.has(kind)) shapeByKind.set(kind, shape);
  }
  return shapeByKind;
}
