import type { OpClass } from '../../model/classes.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { StageValue } from '../../model/documents/compare.js';
import type { Figure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import type { ScopeOptions } from '../../facts/trace/scope.js';

export interface SideKernel {
  phase: string;
  name: string;
  short_name: string;
  class: OpClass;
  tile: string | null;
  /** Calls per mean instance of the phase. */
  count: number;
  ms: number;
  mean_ns: number;
}

/** One session reduced for comparison: everything per mean instance, so that numbers of steps may differ. */
export interface Side {
  session: Session;
  source: string;
  /** Name of the tool that recorded the timeline. */
  profiler?: string;
  /** Why this rank of several is compared, in a sentence. */
  whyRank?: string;
  /** The rank or GPU of the times and kernels. */
  focus: ScopeOptions;
  waterfalls: StageWaterfall[];
  /** Ranks that share its work; null without kernels. */
  ranks: number | null;
  stages: {
    phase: string;
    value: Omit<NonNullable<StageValue>, 'idle_ms' | 'idle_share' | 'tokens_per_s' | 'ms_per_token'>;
    /** The time that `mfu` refers to, ms. */
    mfu_ms: number | null;
    /** Whether duration_ms is from an execution without a profiler. */
    is_clean?: boolean;
    /** The time under the profiler; only for timelines. */
    profiled_ms?: Figure;
    /** Set if an instance is a mean over several batch sizes. */
    batch_sizes?: number[];
  }[];
  kernels: SideKernel[];
  /** Names of attention operators, which identify an implementation; null if no operators were recorded. */
  attention_operators: string[] | null;
  /** Phases with the GEMMs of one typical instance, in order. */
  gemms: { phase: string; tiles: string[] }[];
  /** Mean clocks, power and temperature of each GPU in the compared phases. */
  clocks: { gpu: string; metric: string; mean: number }[];
}
