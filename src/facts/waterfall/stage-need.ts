import { weightBytes } from '../../llm/storage.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { WorkloadModel } from '../model-work.js';
import type { GpuRoofs } from '../roofs.js';
import type { TraceScope } from '../trace/scope.js';
import { type CopyNeed, necessaryOfLoading, necessaryOfParts, necessaryOfSampling } from './group-needs.js';
import { type GroupSteps, runSizesLabel } from './group-steps.js';
import { meanNecessary, type NecessaryTime, type Peaks } from './necessary.js';
import type { GroupSums } from './window-rows.js';
import { formatMs } from '../../vocabulary/format.js';

export interface NeedFacts {
  model: WorkloadModel | MissingFigure;
  roofs: GpuRoofs;
  peaks: Peaks;
  steps: GroupSteps;
  /** Bytes copied from the host per mean instance of loading. */
  loadedBytes: number;
}

/** The run's sizes may not apply to every stage. A roofline this many times the measured time shows that they do not. */
export const maxRooflineShare = 1.1;

/** Necessary time of a mean instance of a group; missing with a reason. */
export function needOf(sums: GroupSums, facts: NeedFacts): NecessaryTime | CopyNeed | MissingFigure {
  const { group, mean, instances } = sums;
  const { model, peaks, steps } = facts;
  if (group.kind === 'load') return needOfLoading(facts);
  if (group.kind === 'other') {
    return missing('program_range', 'the FLOPs and bytes of a range named by the program are not known');
  }
  if (group.kind === 'training') {
    return missing('training', 'only the necessary work of inference is known, not of training');
  }
  if ('reason' in model) return model;
  switch (group.kind) {
    case 'outside':
      return missing('no_stage', 'the stage is not marked, so its work is not known');
    case 'sampling':
      return necessaryOfSampling(steps.sampledSequences, model, peaks, mean.classes);
    case 'warmup':
    case 'request': {
      const innerSteps = group.kind === 'warmup' ? steps.warmup : steps.requests;
      if (innerSteps.length === 0) {
        return missing('no_steps', 'no steps are marked inside, so its work is not known');
      }
      const need = necessaryOfParts(innerSteps, instances, model, peaks);
      return checkAssumedSizes(need, innerSteps, mean.wallMs);
    }
    default: {
      const kindSteps = steps.steps.filter(({ kind }) => kind === group.kind);
      if (kindSteps.length === 0) {
        return missing('no_stage', 'the stage is not marked, so its work is not known');
      }
      return checkAssumedSizes(meanNecessary(kindSteps, model, peaks), kindSteps, mean.wallMs);
    }
  }
}

function needOfLoading({ model, roofs, loadedBytes }: NeedFacts): CopyNeed | MissingFigure {
  const weights =
    'reason' in model ? null : weightBytes(model.architecture, model.storage).total / roofs.devices;
  return necessaryOfLoading(loadedBytes, weights, roofs.hostLink);
}

function checkAssumedSizes(
  need: NecessaryTime | MissingFigure,
  steps: GroupSteps['steps'],
  wallMs: number,
): NecessaryTime | MissingFigure {
  const assumed = steps.some((step) => step.assumed);
  if ('reason' in need || !assumed || need.rooflineMs <= maxRooflineShare * wallMs) return need;
  return missing(
    'impossible_sizes',
    `with ${runSizesLabel} it would take at least ${formatMs(need.rooflineMs)}, longer than measured, and its own sizes are not recorded`,
  );
}

/** Bytes copied from the host in all instances of loading. */
export async function readLoadedBytes(scope: TraceScope): Promise<number> {
  await scope.need('windows');
  const [row] = await scope.database.query<{ bytes: number | null }>(
    `SELECT sum(bytes)::DOUBLE AS bytes FROM phase_copies WHERE step_kind = 'load' AND kind = 'HtoD'`,
  );
  return row?.bytes ?? 0;
}
