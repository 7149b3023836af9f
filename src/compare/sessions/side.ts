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

/** One session reduced to what a comparison needs: everything of a mean instance, so that step counts may differ. */
export interface Side {
  session: Session;
  source: string;
  /** The rank or GPU that the times and kernels belong to. */
  focus: ScopeOptions;
  waterfalls: StageWaterfall[];
  /** Ranks that share its work; null where it has no kernels. */
  ranks: number | null;
  stages: {
    phase: string;
    value: Omit<NonNullable<StageValue>, 'idle_ms' | 'idle_share' | 'tokens_per_s' | 'ms_per_token'>;
    /** The time that `mfu` is of, ms. */
    mfu_ms: number | null;
    /** Timelines only: whether duration_ms is from an execution without a profiler, and the time under the profiler. */
    is_clean?: boolean;
    profiled_ms?: Figure;
    /** Where an instance is a mean over several. */
    batch_sizes?: number[];
  }[];
  kernels: SideKernel[];
  /** Names of operators, where the capture has them: they identify an attention implementation. */
  operators: string[];
  /** Phases with their GEMMs listed in the order in which one typical instance ran them. */
  gemms: { phase: string; tiles: string[] }[];
  /** Mean clocks, power and temperature of each GPU in the compared phases. */
  clocks: { gpu: string; metric: string; mean: number }[];
}
