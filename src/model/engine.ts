import type { BenchOrder, BenchPoint, BenchProgress } from './bench.js';
import type { Issue } from './document.js';
import type { Workload } from './manifest.js';
import type { ReasonCode } from './reason-codes.js';

export const engineNames = ['onnx', 'transformers', 'vllm', 'openai'] as const;
export type EngineName = (typeof engineNames)[number];

/** What the user asked for, the same for every engine; null is the engine's own choice. */
export interface EngineRequest {
  model: string;
  weights: 'random' | 'trained' | null;
  dtype: string | null;
  device: string | null;
  threads: number | null;
  /** --engine-arg key=value, of one variant. */
  engineArgs: Record<string, string>;
  /** Base URL of engine openai. */
  url: string | null;
  /** Interpreter of engines in Python; null finds one. */
  python: string | null;
  /** Shapes that will be measured; an engine that writes its model refuses them first when none can run. */
  points?: readonly BenchPoint[];
}

export interface LaunchControl {
  /** The process appends its record lines here (INFERSCOPE_RECORD). */
  recordPath: string;
  /** Folder for what the launch leaves behind, logs included. */
  scratch: string;
  signal: AbortSignal;
  onProgress: (progress: BenchProgress) => void;
}

export interface EngineLaunch {
  /** Process to watch for memory and CPU; null where the engine runs elsewhere. */
  pid: number | null;
  /**
   * Ends when the process is gone. Never rejects: what a launch recorded before it failed stays of use.
   * `log` is what it said, for the artifacts; null where it said nothing.
   */
  ended: Promise<{ failure: unknown; log: string | null }>;
}

/** One engine with one model, ready to be launched as often as the statistics ask. */
export interface PreparedEngine {
  name: EngineName;
  /** Manifest's workload, without sizes (null there). */
  workload: Workload;
  /** Most tokens of a sequence, prompt and output; null when not known. */
  maxContext: number | null;
  /** Figures that this engine cannot measure, by name (device_time, memory, idle_share, kv_occupancy, …), and why. */
  cannot: Record<string, { code: ReasonCode; text: string }>;
  /** What of the engine itself bends the figures of these points; kept with the session. */
  issues?(points: readonly BenchPoint[]): Issue[];
  /** How next tokens are chosen, where it is not greedily without an end token. */
  sampling?: string;
  /** Timed repeats of a point in a launch, where that is the engine's own number whatever is ordered. */
  repeats?: number;
  /** How a point is warmed up, where it is not until it is stable; `most` is what may be ordered. */
  warmup?(most: number): string;
  /** Why a point is not worth starting; null when it is. */
  refuses(point: BenchPoint): string | null;
  launch(order: BenchOrder, control: LaunchControl): EngineLaunch;
}

/**
 * An engine: finds what it needs, resolves the model, and refuses what it cannot run before anything is measured.
 * @throws E_ENGINE_MISSING, E_MODEL_NOT_FOUND, E_USAGE, E_DTYPE, E_LENGTHS, …
 */
export interface Engine {
  name: EngineName;
  prepare(request: EngineRequest): Promise<PreparedEngine>;
}
