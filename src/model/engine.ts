import type { BenchOrder, BenchPoint, BenchProgress } from './bench.js';
import type { Issue } from './document.js';
import type { Workload } from './manifest.js';
import type { ReasonCode } from './reason-codes.js';

export const engineNames = ['onnx', 'transformers', 'vllm', 'openai'] as const;
export type EngineName = (typeof engineNames)[number];

/** The user's request, the same for every engine; null uses the engine's default. */
export interface EngineRequest {
  model: string;
  weights: 'random' | 'trained' | null;
  dtype: string | null;
  device: string | null;
  threads: number | null;
  /** --engine-arg key=value, of one variant. */
  engineArgs: Record<string, string>;
  /** Base URL for engine openai. */
  url: string | null;
  /** Interpreter for engines in Python; null searches one. */
  python: string | null;
  /** Shapes that will be measured; an engine that writes its model first rejects them if none can run. */
  points?: readonly BenchPoint[];
}

export interface LaunchControl {
  /** The process appends its record lines here (INFERSCOPE_RECORD). */
  recordPath: string;
  /** Folder for output of the launch, including logs. */
  scratch: string;
  signal: AbortSignal;
  onProgress: (progress: BenchProgress) => void;
}

export interface EngineLaunch {
  /** Process to watch for memory and CPU; null if the engine runs elsewhere. */
  pid: number | null;
  /**
   * Resolves when the process has exited. Never rejects: records of a failed launch are still useful. `log` is its output, for the
   * artifacts; null without output.
   */
  ended: Promise<{ failure: unknown; log: string | null }>;
}

/** One engine with one model, ready to be launched any number of times. */
export interface PreparedEngine {
  name: EngineName;
  /** The manifest's workload without sizes (null there). */
  workload: Workload;
  /** Maximum tokens of a sequence, prompt and output; null if unknown. */
  maxContext: number | null;
  /** Figures that this engine cannot measure, by name (device_time, memory, idle_share, kv_occupancy, …), with the reason. */
  notMeasured: Record<string, { code: ReasonCode; text: string }>;
  /** Issues of the engine itself that affect the figures of these points; saved in the session. */
  issues?(points: readonly BenchPoint[]): Issue[];
  /** How next tokens are chosen, unless greedily without an end token. */
  sampling?: string;
  /** Timed repeats of a point per launch, if the engine fixes them whatever is requested. */
  repeats?: number;
  /** How a point is warmed up, unless until it is stable; `max` is the requested maximum. */
  warmup?(max: number): string;
  /** Why a point cannot run; null if it can. */
  refusal(point: BenchPoint): string | null;
  launch(order: BenchOrder, control: LaunchControl): EngineLaunch;
}

/**
 * An engine: finds its requirements, resolves the model, and rejects what it cannot run before anything is measured.
 * @throws E_ENGINE_MISSING, E_MODEL_NOT_FOUND, E_USAGE, E_DTYPE, E_LENGTHS, …
 */
export interface Engine {
  name: EngineName;
  prepare(request: EngineRequest): Promise<PreparedEngine>;
}
