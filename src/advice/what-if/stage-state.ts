import type { StageShape } from '../../llm/shape.js';
import { isBarOf } from '../../model/bars.js';
import type { Finding, StageWaterfall } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import type { WeightStream } from '../../model/documents/roofline.js';
import type { MissingFigure } from '../../model/figure.js';
import type { StageFacts } from '../findings/stage-facts.js';
import type { WorkloadModel } from '../../facts/model-work.js';
import { halfWidth } from '../../facts/difference/half-width.js';
import type { Peaks } from '../../facts/waterfall/necessary.js';

/** Model, sizes and peaks that necessary work is reckoned with; each change may replace one. */
export interface StageNeeds {
  model: WorkloadModel;
  shape: StageShape;
  peaks: Peaks;
}

/** What a change needs of a rule's finding. */
export type ComputedGain = Pick<Finding, 'stage' | 'title' | 'bars'> & {
  gain: Omit<NonNullable<Finding['gain']>, 'per'> | null;
};

/** A stage between two changes. Every change takes one and gives the next; nothing here is ever modified. */
export interface StageState {
  waterfall: StageWaterfall;
  /** ms by bar; without the profiler's own, so that they sum to the clean time where there is one. */
  bars: ReadonlyMap<string, number>;
  /** Kernels of a mean instance by class, copies by bar: what they cost beside their bytes and FLOPs is each one's. */
  kernelCounts: ReadonlyMap<string, number>;
  needs: StageNeeds | MissingFigure;
  /** Bars of time in which the device waits for the host. */
  idleBars: ReadonlySet<string>;
  /** Kernels of a mean instance, and launches that bring them; null where they are not counted. */
  kernels: number | null;
  launches: number | null;
  /** Bytes that a mean instance copies between host and device; null where they are not counted. */
  copiedBytes: number | null;
  /** Counts and waits of the timeline; null for other sources. */
  facts: StageFacts | null;
  /** What the host needs of a stage for itself, waits for the device left out, ms; null where it is not known. */
  hostMs: number | null;
  /** Device's idle time that launching costs: it shrinks where kernels grow, ms. */
  launchIdleMs: number;
  /** Measured period from node to node of a replayed graph, ns; null where none was measured. */
  nodeNs: number | null;
  /** Found in the session, for changes whose gain a rule computes. */
  findings: readonly ComputedGain[];
  gpuName: string | null;
  onCpu: boolean;
  /** Measured rates at which this CPU's matrix products stream weights, by format and batch; empty on a GPU. */
  weightStreams: readonly WeightStream[];
}

/** What a change does to a stage. */
export interface Effect {
  state: StageState;
  /** Why each bar changes. */
  how: Map<string, string>;
  /** By how much the time after may be shorter and longer than the bars' sum, by the model's own error, ms. */
  lessMs: number;
  moreMs: number;
  assumptions: string[];
}

export const sumOf = (bars: ReadonlyMap<string, number>): number =>
  [...bars.values()].reduce((sum, ms) => sum + ms, 0);

/** Bars of a timeline in which the device waits for the host. */
export const waitsForHost = (id: string): boolean =>
  isBarOf(id, 'launch_latency', 'launch_overhead', 'synchronization', 'host');

/** Time of these bars. */
export const idleMsOf = ({ bars, idleBars }: Pick<StageState, 'bars' | 'idleBars'>): number =>
  [...bars].reduce((sum, [id, ms]) => sum + (idleBars.has(id) ? Math.max(0, ms) : 0), 0);

export const classOfBar = (id: string): string | null =>
  /^(?:inefficiency|nonessential|kernels)\.(.*)$/.exec(id)?.[1] ?? null;

/** Nothing changes, for the reason given. */
export const unchanged = (state: StageState, why: string): Effect => ({
  state,
  how: new Map(),
  lessMs: 0,
  moreMs: 0,
  assumptions: [why],
});

/** Half of the 95 % interval of what was measured, as a share. */
export const measuredSpread = (waterfall: StageWaterfall): number =>
  halfWidth(headlineTime(waterfall)) ?? 0.05;
