import type { OnnxModel } from '../../engines/onnx/onnx-model.js';

/** What one process of the embedded engine is asked to run. */
export interface WorkloadPlan {
  model: OnnxModel;
  threads: number;
  batchSize: number;
  inputLen: number;
  outputLen: number;
  /** Of the prompts; every repeat has its own prompt. */
  seed: number;
  executionId: string;
  /** Which process launch of the execution this is, from 0. */
  launch: number;
  /** Number of the first iteration; iterations count on over all launches. */
  firstIteration: number;
  warmup: { min: number; max: number };
  repeats: number;
  /** Path prefix of the operator trace; null runs without a profiler. */
  profilePrefix: string | null;
}

/** Progress of the workload process. */
export type WorkloadProgress =
  | { type: 'phase'; phase: 'load' | 'warmup' | 'timed' }
  | { type: 'iteration'; iteration: number; warmup: boolean; e2eMs: number };

export interface WorkloadResult {
  /** True when it was asked to stop before all repeats were done. */
  stopped: boolean;
  tracePath: string | null;
  warmupIterations: number;
  /** Whether the last two warm-up repeats were within 5 % of each other. */
  stable: boolean;
}
