import type { StageShape } from '../../llm/shape.js';
import { isBarOf, isEdgeBar } from '../../model/bars.js';
import type { Finding, StageWaterfall } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import type { WeightStream } from '../../model/documents/roofline.js';
import type { MissingFigure } from '../../model/figure.js';
import type { Pace } from '../findings/job-causes.js';
import type { SlowRank } from '../findings/rank-times.js';
import type { StageFacts } from '../findings/stage-facts.js';
import type { WorkloadModel } from '../../facts/model-work.js';
import { halfWidth } from '../../facts/difference/half-width.js';
import type { Peaks } from '../../facts/waterfall/necessary.js';

/** Model, sizes and peaks for computing necessary work; each change may replace one. */
export interface StageNeeds {
  model: WorkloadModel;
  shape: StageShape;
  peaks: Peaks;
}

/** Parts of a rule's finding that a change uses. */
export type ComputedGain = Pick<Finding, 'stage' | 'title' | 'bars'> & {
  gain: Omit<NonNullable<Finding['gain']>, 'per'> | null;
  /** Launches per mean instance that the change removes. */
  launches?: number;
};

/** Effects of other ranks on a stage of the rank shown, ms per mean instance. */
export interface JobState {
  /** `isShownRank`: the waterfall is of this rank. */
  slow: (SlowRank & { isShownRank: boolean; pace: Pace | null }) | null;
  /** A group of ranks with a slower exchange than the others; `isShownRank`: it includes the rank shown. */
  link: { ranks: string; isShownRank: boolean; lostMs: number; pace: Pace | null } | null;
  /** Removes what an earlier change could not, because the other cause set the pace. */
  rest: ((bars: Map<string, number>) => number) | null;
}

/** A stage between two changes. Every change returns a new state; states are immutable. */
export interface StageState {
  waterfall: StageWaterfall;
  /** ms by bar, without profiler overhead: they sum to the clean time if there is one. */
  bars: ReadonlyMap<string, number>;
  /** Kernels per mean instance by class, copies by bar: each has its own latency in addition to bytes and FLOPs. */
  kernelCounts: ReadonlyMap<string, number>;
  needs: StageNeeds | MissingFigure;
  /** Bars of time in which the device waits for the host. */
  idleBars: ReadonlySet<string>;
  /** Kernels per mean instance, and their launches; null if not counted. */
  kernels: number | null;
  launches: number | null;
  /** Bytes copied from host to device per mean instance; null if not counted. */
  copiedBytes: number | null;
  /** Counts and waits of the timeline; null for other sources. */
  facts: StageFacts | null;
  /** Host time of a stage without waits for the device, ms; null if not known. */
  hostMs: number | null;
  /** Idle time caused by launching, ms: shrinks if kernels get longer. */
  launchIdleMs: number;
  /** Measured period from node to node of a replayed graph, ns; null if not measured. */
  nodeNs: number | null;
  /** Findings of the session, for changes with a gain computed by a rule. */
  findings: readonly ComputedGain[];
  /** Null for a capture of one rank. */
  job: JobState | null;
  gpuName: string | null;
  onCpu: boolean;
  /** Measured rates at which this CPU's GEMMs stream weights, by format and batch; empty on a GPU. */
  weightStreams: readonly WeightStream[];
}

/** Effect of a change on a stage. */
export interface Effect {
  state: StageState;
  /** Why each bar changes. */
  explanations: Map<string, string>;
  /** Model error: how much shorter and longer than the bars' sum the later time may be, ms. */
  lessMs: number;
  moreMs: number;
  assumptions: string[];
  /** Why the change does nothing. */
  unchanged?: string;
}

export const sumOf = (bars: ReadonlyMap<string, number>): number =>
  [...bars.values()].reduce((sum, ms) => sum + ms, 0);

/**
 * Bars of a timeline in which the device waits for the host, except those at the edges of the capture, which no change
 * affects.
 */
export const waitsForHost = (id: string): boolean =>
  isBarOf(id, 'launch_latency', 'launch_overhead', 'synchronization', 'host') && !isEdgeBar(id);

/** Time of these bars. */
export const idleMsOf = ({ bars, idleBars }: Pick<StageState, 'bars' | 'idleBars'>): number =>
  [...bars].reduce((sum, [id, ms]) => sum + (idleBars.has(id) ? Math.max(0, ms) : 0), 0);

/** Nothing changes, for the reason given. */
export const unchanged = (state: StageState, why: string): Effect => ({
  state,
  explanations: new Map(),
  lessMs: 0,
  moreMs: 0,
  assumptions: [],
  unchanged: why,
});

/** Half of the 95 % interval of the measurement, as a share; 5 % if it is not known. */
export const measuredSpread = (waterfall: StageWaterfall): number =>
  halfWidth(headlineTime(waterfall)) ?? 0.05;
