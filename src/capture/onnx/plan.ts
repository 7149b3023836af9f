import type { PointOutcome } from '../../model/bench.js';
import type { OnnxModel } from '../../engines/onnx/onnx-model.js';

/** One shape of work and how often it is timed in this process. */
export interface WorkloadPoint {
  /** BenchPoint.point of a benchmark; null in a profile, which has one shape without a name. */
  point: string | null;
  batchSize: number;
  inputLen: number;
  outputLen: number;
  repeats: number;
}

/** Plan of one process of the embedded engine. */
export interface WorkloadPlan {
  model: OnnxModel;
  threads: number;
  points: WorkloadPoint[];
  /** Seed of the prompts; every repeat has its own prompt. */
  seed: number;
  executionId: string;
  /** Number of the process launch of the execution, from 0. */
  launch: number;
  /** Number of the first iteration; iterations are numbered over all launches. */
  firstIteration: number;
  /** Warm-up per point: ends when two successive repeats are within `within` of each other, after at least `min` and at most `max`. */
  warmup: { min: number; max: number; within: number };
  /** Path prefix of the operator trace; null runs without a profiler. */
  profilePrefix: string | null;
  /** The runtime's graph optimizations; default: all. */
  graphOptimization?: 'disabled' | 'basic' | 'extended' | 'all';
}

/** Progress of the workload process. `begin` and `point` come from benchmarks only. */
export type WorkloadProgress =
  | { type: 'phase'; phase: 'load' | 'warmup' | 'timed' }
  /** The current work: if the process dies, this is the cause. */
  | { type: 'begin'; point: string }
  | { type: 'iteration'; point: string | null; iteration: number; warmup: boolean; e2eMs: number }
  | { type: 'point'; point: string; outcome: PointOutcome; text: string | null };

export interface WorkloadResult {
  /** Whether it was stopped before all repeats were done. */
  stopped: boolean;
  tracePath: string | null;
  /** Sum over all points. */
  warmupIterations: number;
  /** Whether the last two warm-up repeats of every point were within the tolerance of the plan. */
  stable: boolean;
}
