import { stepKinds } from '../../model/record.js';
import { samplingOp } from '../../llm/work.js';
import { bytesOf } from '../../llm/work-totals.js';
import { figure, type Figure, missing, type MissingFigure } from '../../model/figure.js';
import type { OpClass } from '../../model/classes.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { WorkloadModel } from '../model-work.js';
import type { SizedStep } from '../utilization/sizes.js';
import { meanNecessary, type NecessaryTime, type Peaks } from './necessary.js';
import { formatBytes } from '../../vocabulary/format.js';

/** A step inside a request or a warm-up, and the id of that instance. */
export interface PartStep extends SizedStep {
  instance: number;
}

/**
 * Necessary time of all steps of a mean instance. Steps are summed, because each waits for the previous token.
 * Prefills, and decode steps of each batch size, use their mean sizes.
 * @param instances number of instances that the steps are from
 */
export function necessaryOfParts(
  steps: readonly PartStep[],
  instances: number,
  model: WorkloadModel,
  peaks: Peaks,
): NecessaryTime | MissingFigure {
  const total: NecessaryTime = {
    rooflineMs: 0,
    byClass: new Map(),
    bound: 'memory',
    tokens: null,
    overSteps: true,
  };
  let computeMs = 0;
  for (const kind of stepKinds) {
    const kindSteps = steps.filter((step) => step.kind === kind);
    if (kindSteps.length === 0) continue;
    const stepNeed = meanNecessary(kindSteps, model, peaks);
    if ('reason' in stepNeed) return stepNeed;
    const times = kindSteps.length / instances;
    total.rooflineMs += stepNeed.rooflineMs * times;
    if (stepNeed.bound === 'compute') computeMs += stepNeed.rooflineMs * times;
    for (const [opClass, value] of stepNeed.byClass) {
      // Includes sampling, which is not part of the forward pass (rooflineMs) but runs once per step.
      total.byClass.set(opClass, (total.byClass.get(opClass) ?? 0) + value * times);
    }
  }
  return { ...total, bound: computeMs > total.rooflineMs / 2 ? 'compute' : 'memory' };
}

/**
 * Necessary time of sampling: read the logits of every sequence once and write a token id. Comparisons cost almost
 * nothing, and sorting is not necessary.
 * @param batch mean number of sequences
 * @param classes exclusive ms of the kernels that ran in it
 */
export function necessaryOfSampling(
  batch: number | null,
  { architecture, storage }: WorkloadModel,
  peaks: Peaks,
  classes: ReadonlyMap<OpClass, number>,
): NecessaryTime | MissingFigure {
  if (batch === null) return missing('unknown_sizes', 'the number of sampled sequences is not known');
  if (peaks.bandwidth.value === null) return peaks.bandwidth;
  const shape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 0 } as const;
  const work = samplingOp(architecture, shape, storage);
  const bytes = bytesOf(work) * batch;
  const ms = (bytes / peaks.bandwidth.value) * 1e3;
  // Kernels are classified by name, and an argmax is named a reduction in most cases.
  const opClass = classes.has('sampling')
    ? 'sampling'
    : ([...classes].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 'sampling');
  return {
    rooflineMs: ms,
    byClass: new Map([[opClass, ms]]),
    bound: 'memory',
    tokens: null,
  };
}

/** Bytes copied from host to device per mean instance, and the time that the link needs for them. */
export interface CopyNeed {
  rooflineMs: number;
  bytes: number;
  link: Figure;
}

/**
 * Loading weights: every byte crosses the host link once. Bytes beyond the model's weights were copied more than once.
 * @param copiedBytes from the host per mean instance
 */
export function necessaryOfLoading(
  copiedBytes: number,
  weightBytes: number | null,
  link: Figure,
): CopyNeed | MissingFigure {
  if (!(copiedBytes > 0)) {
    return missing(
      'nothing_copied',
      'no copies from the host: weights were created on the device, or copied before or after',
    );
  }
  if (link.value === null) return link;
  const bytes = weightBytes === null ? copiedBytes : Math.min(copiedBytes, weightBytes);
  return { rooflineMs: (bytes / link.value) * 1e3, bytes, link };
}

export const needFields = (
  need: NecessaryTime | CopyNeed | MissingFigure,
): Pick<StageWaterfall, 'roofline_ms' | 'bound' | 'new_tokens'> => ({
  roofline_ms: figureOfNeed(need),
  bound: 'bound' in need ? need.bound : null,
  new_tokens: 'tokens' in need ? need.tokens : null,
});

const figureOfNeed = (need: NecessaryTime | CopyNeed | MissingFigure): Figure => {
  if ('reason' in need) return need;
  if ('link' in need) {
    return figure(
      need.rooflineMs,
      'ms',
      `${formatBytes(need.bytes)} once over the host link; disk time is not known`,
    );
  }
  const formula = `${need.overSteps ? 'Σ over its steps of ' : ''}max(Σ FLOPs / peak, Σ bytes / bandwidth)`;
  return figure(need.rooflineMs, 'ms', `${formula}: ${need.bound}-bound`);
};
