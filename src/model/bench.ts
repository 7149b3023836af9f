/**
 * What bench commands send to the process of any engine, and the progress that it reports. The order is JSON, for engines
 * in any language; figures are never sent this way: they are lines of the record file (record.ts).
 */

export const benchParts = ['latency', 'throughput', 'sequence'] as const;
export type BenchPart = (typeof benchParts)[number];

/** One shape of work: a batch of prompts of equal length, a fixed number of new tokens per sequence, greedy, no end token. */
export interface BenchPoint {
  /** `b4-p128-o64`: unique in a benchmark. */
  point: string;
  /** Benchmarks that use this shape; a suite measures it once. */
  parts: BenchPart[];
  batch_size: number;
  input_len: number;
  output_len: number;
}

export function benchPoint(
  parts: BenchPart[],
  batch_size: number,
  input_len: number,
  output_len: number,
): BenchPoint {
  return { point: `b${batch_size}-p${input_len}-o${output_len}`, parts, batch_size, input_len, output_len };
}

/** One process launch of one engine configuration. It measures all points, with their repeats interleaved. */
export interface BenchOrder {
  v: 1;
  execution_id: string;
  /** Process launch of the execution, from 0: the unit of the statistics. */
  launch: number;
  /** Number of the first iteration; iterations are numbered over all launches of an execution. */
  first_iteration: number;
  /** Preset, hub id, folder or config.json, as the engine accepts it. */
  model: string;
  weights: 'random' | 'trained';
  /** Null uses the engine's default. */
  dtype: string | null;
  device: string | null;
  /** --engine-arg key=value. */
  engine_args: Record<string, string>;
  points: BenchPoint[];
  /** Timed repeats per point. */
  repeats: number;
  /** Warm-up of a point ends when the last two of at least `min` repeats differ by the share `within` or less, at the latest after `max`. */
  warmup: { min: number; max: number; within: number };
  /** Whether to run one more repeat of every point under the framework's profiler after the timed ones, for device work. */
  device_work: boolean;
  seed: number;
  /** For `inferscope memory`: the engine reports its memory per stage; `snapshot`: also allocations by call site. */
  memory?: { snapshot: boolean };
}

/** Progress reported by an engine process: IPC messages from ours, JSON lines on stdout from other languages. */
export type BenchProgress =
  | { type: 'phase'; phase: 'load' | 'warmup' | 'timed' | 'device_work' }
  | { type: 'iteration'; point: string; iteration: number; warmup: boolean; e2e_ms: number }
  | { type: 'point'; point: string; outcome: PointOutcome; text: string | null };

/** How a point ended in a launch. */
export const pointOutcomes = ['measured', 'out_of_memory', 'failed', 'skipped', 'stopped'] as const;
export type PointOutcome = (typeof pointOutcomes)[number];
