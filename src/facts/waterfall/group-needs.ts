import { stepKinds } from '../../model/record.js';
import { samplingOp } from '../../llm/work.js';
import { bytesOf } from '../../llm/work-totals.js';
import { figure, type Figure, missing, type MissingFigure } from '../../model/figure.js';
import type { OpClass } from '../../model/classes.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { WorkloadModel } from '../model-work.js';
import type { SizedStep } from '../utilization/sizes.js';
import { meanNecessary, type Necessary, type Peaks } from './necessary.js';
import { formatBytes } from '../../vocabulary/format.js';

/** Of which stage a step is part: of a request by the windows it is made of, of a warm-up by its range. */
export interface PartStep extends SizedStep {
  instance: number;
}

/**
 * What the steps that a mean instance is made of need together: one after the other, for each waits for the token of the one
 * before. Prefills, and decode steps of each batch size, at their means.
 * @param instances of the whole, each with steps of its own
 */
export function necessaryOfParts(
  steps: readonly PartStep[],
  instances: number,
  model: WorkloadModel,
  peaks: Peaks,
): Necessary | MissingFigure {
  const whole: Necessary = {
    rooflineMs: 0,
    byClass: new Map(),
    bound: 'memory',
    tokens: null,
  };
  let computeMs = 0;
  for (const kind of stepKinds) {
    const own = steps.filter((step) => step.kind === kind);
    if (own.length === 0) continue;
    const one = meanNecessary(own, model, peaks);
    if ('reason' in one) return one;
    const times = own.length / instances;
    whole.rooflineMs += one.rooflineMs * times;
    if (one.bound === 'compute') computeMs += one.rooflineMs * times;
    for (const [of, value] of one.byClass) {
      // Sampling is no part of a pass; where it ran on the device it is needed once a step all the same.
      whole.byClass.set(of, (whole.byClass.get(of) ?? 0) + value * times);
    }
  }
  return { ...whole, bound: computeMs > whole.rooflineMs / 2 ? 'compute' : 'memory' };
}

/**
 * What choosing the next tokens needs: the logits of every sequence read once, a token id written. Comparing them costs
 * nothing next to that, and a sort is one way to do it, not a necessary one.
 * @param batch mean number of sequences
 * @param classes exclusive ms of the kernels that ran in it
 */
export function necessaryOfSampling(
  batch: number | null,
  { architecture, storage }: WorkloadModel,
  peaks: Peaks,
  classes: ReadonlyMap<OpClass, number>,
): Necessary | MissingFigure {
  if (batch === null) return missing('unknown_sizes', 'the number of sampled sequences is not known');
  if (peaks.bandwidth.value === null) return peaks.bandwidth;
  const shape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 0 } as const;
  const one = samplingOp(architecture, shape, storage);
  const bytes = bytesOf(one) * batch;
  const ms = (bytes / peaks.bandwidth.value) * 1e3;
  // Kernels are classed by their names: an argmax is a reduction to most of them.
  const own = classes.has('sampling')
    ? 'sampling'
    : ([...classes].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 'sampling');
  return {
    rooflineMs: ms,
    byClass: new Map([[own, ms]]),
    bound: 'memory',
    tokens: null,
  };
}

/** Bytes that went from the host to the device in a mean instance, and how long the link needs for them. */
export interface CopyNeed {
  rooflineMs: number;
  bytes: number;
  link: Figure;
}

/**
 * Loading weights: every byte once over the link to the host. More than the model's weights were copied more than once.
 * @param copiedBytes from the host in a mean instance
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

/** What a stage states of its need. */
export const statedNeed = (
  need: Necessary | CopyNeed | MissingFigure,
): Pick<StageWaterfall, 'roofline_ms' | 'bound' | 'new_tokens'> => ({
  roofline_ms: figureOfNeed(need),
  bound: 'bound' in need ? need.bound : null,
  new_tokens: 'tokens' in need ? need.tokens : null,
});

const figureOfNeed = (need: Necessary | CopyNeed | MissingFigure): Figure => {
  if ('reason' in need) return need;
  if ('link' in need) {
    return figure(
      need.rooflineMs,
      'ms',
      `${formatBytes(need.bytes)} once over the host link; disk time is not known`,
    );
  }
  return figure(need.rooflineMs, 'ms', `max(Σ FLOPs / peak, Σ bytes / bandwidth): ${need.bound}-bound`);
};
