import { addToMean, type ShapeCount, type StageShape } from '../../llm/shape.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { shapeOf } from '../../facts/utilization/groups.js';
import { readTracedSteps, runSizesOf, withSizes } from '../../facts/utilization/sizes.js';
import type { FindingContext } from './rule.js';

/** Steps of one kind with equal batch and new tokens. */
export interface ShapeGroup extends ShapeCount {
  kind: PhaseKind;
  stage_ids: number[];
  /** Sum over the steps. */
  wall_ns: number;
}

const groupsByContext = new WeakMap<FindingContext, Promise<ShapeGroup[]>>();

/** The sizes of the steps of a kind, the most common first; empty if not known. */
export async function stageShapes(context: FindingContext, kind: PhaseKind): Promise<ShapeGroup[]> {
  const groups = groupsByContext.get(context) ?? readGroups(context);
  groupsByContext.set(context, groups);
  return (await groups).filter((group) => group.kind === kind);
}

/** Batch, new tokens and mean context of the most common steps of a kind; null if not known. */
export const stageShape = async (context: FindingContext, kind: PhaseKind): Promise<StageShape | null> =>
  (await stageShapes(context, kind))[0]?.shape ?? null;

async function readGroups({ scope, manifest }: FindingContext): Promise<ShapeGroup[]> {
  if (!scope) return [];
  const run = runSizesOf(manifest.workload, 'the run');
  const groups = new Map<string, ShapeGroup>();
  for (const step of await readTracedSteps(scope)) {
    const shape = shapeOf(withSizes(step, run));
    if ('reason' in shape) continue;
    const key = [step.kind, shape.batchSize, shape.newTokens, shape.source?.step].join(' ');
    const group = groups.get(key);
    if (group) {
      addToMean(group, { shape, steps: 1 });
      group.stage_ids.push(step.stage_id);
      group.wall_ns += step.wall_ns;
    } else
      groups.set(key, {
        kind: step.kind,
        shape,
        steps: 1,
        stage_ids: [step.stage_id],
        wall_ns: step.wall_ns,
      });
  }
  return [...groups.values()].toSorted((a, b) => b.steps - a.steps);
}
