/**
 * What the bench commands ask of every engine, and what an engine's process says back. The order travels as JSON to
 * engines of any language; figures never travel this way: they are lines of the record file (record.ts).
 */

export const benchParts = ['latency', 'throughput', 'sequence'] as const;
export type BenchPart = (typeof benchParts)[number];

/** One shape of work: a batch of equally long prompts, a fixed number of new tokens per sequence, greedy, no end token. */
export interface BenchPoint {
  /** `b4-p128-o64`: unique in a benchmark. */
  point: string;
  /** Which questions it serves; a suite measures a shape once. */
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

/** One process launch of one engine configuration. All points are measured in it, their repeats interleaved. */
export interface BenchOrder {
  v: 1;
  execution_id: string;
  /** Process launch of the execution, from 0: the unit of the statistics. */
  launch: number;
  /** Iterations count on over all launches of an execution. */
  first_iteration: number;
  /** Preset, hub id, folder or config.json, as the engine takes it. */
  model: string;
  weights: 'random' | 'trained';
  /** Null takes the engine's own choice. */
  dtype: string | null;
  device: string | null;
  /** --engine-arg key=value. */
  engine_args: Record<string, string>;
  points: BenchPoint[];
  /** Timed repeats of every point. */
  repeats: number;
  /** Warm-up of a point ends when two repeats in a row are within `within` of each other, at `max` at the latest. */
  warmup: { min: number; max: number; within: number };
  /** After the timed repeats, one more of every point under the framework's profiler, for device work. */
  device_work: boolean;
  seed: number;
  /** For `inferscope memory`: the engine reports its memory per stage; `snapshot`: also allocations by call site. */
  memory?: { snapshot: boolean };
}

/** Progress that an engine process reports: IPC messages from ours, JSON lines on stdout from other languages. */
export type BenchProgress =
  | { type: 'phase'; phase: 'load' | 'warmup' | 'timed' | 'device_work' }
  | { type: 'iteration'; point: string; iteration: number; warmup: boolean; e2e_ms: number }
  | { type: 'point'; point: string; outcome: PointOutcome; text: string | null };

/** How a point ended in a launch. */
export const pointOutcomes = ['measured', 'out_of_memory', 'failed', 'skipped', 'stopped'] as const;
export type PointOutcome = (typeof pointOutcomes)[number];
