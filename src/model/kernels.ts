/**
 * What the roofline and kernels commands send to a process that runs operations (PyTorch on a GPU, ONNX Runtime on a CPU). The order is
 * JSON; measurements come back as `microbenchmark` lines of the record file.
 */
import type { EngineLaunch } from './engine.js';

/** Operations of LLMs and related models. */
export const kernelNames = [
  'gemm',
  'linear',
  'conv2d',
  'lstm',
  'layernorm-gelu',
  'attention',
  'softmax',
  'rmsnorm',
  'swiglu',
  'rope',
  'embedding',
  'sampling',
] as const;
export type KernelName = (typeof kernelNames)[number];

/** Probes of a machine's roofline other than GEMMs. */
const probeNames = [
  'copy',
  'read',
  'write',
  'triad',
  'l2-read',
  'launch',
  'graph-node',
  'host-to-device',
  'device-to-host',
  'all-reduce',
] as const;
export type ProbeName = (typeof probeNames)[number];

/**
 * One operation with its sizes, by kernel:
 * gemm {m, n, k}; linear {tokens, in_features, out_features, bias}; conv2d {batch, channels, out_channels, height,
 * width, kernel}; lstm {batch, seq, input, hidden, layers}; layernorm-gelu {tokens, hidden}; attention {batch, heads,
 * kv_heads, head_dim, new_tokens, context} (context: keys each query may see at most, the new ones included; causal);
 * softmax {rows, columns}; rmsnorm {tokens, hidden, residual}; swiglu {tokens, intermediate}; rope {tokens, heads,
 * kv_heads, head_dim}; embedding {tokens, vocab, hidden}; sampling {batch, vocab} (argmax);
 * copy, read, write, triad, l2-read {bytes}: size of one array; launch, graph-node {}; host-to-device, device-to-host
 * {bytes, pinned}; all-reduce {bytes, ranks}.
 */
export interface KernelCase {
  /** Unique in an order. */
  case: string;
  kernel: KernelName | ProbeName;
  /** Backend, if the framework has several: flash, efficient, cudnn, math; null is the framework's default. */
  backend: string | null;
  /** Names in src/model/dtype.ts, and tfloat32 for float32 matrices on tensor cores. */
  dtype: string;
  params: Record<string, number>;
  /** Floating-point operations per run; a multiply-add counts 2. */
  flops: number;
  /** Bytes that one run must move: each input and output once. */
  bytes: number;
}

export interface KernelOrder {
  v: 1;
  execution_id: string;
  device: string | null;
  cases: KernelCase[];
  /** Minimum timed runs of each case; more until the interval is narrow, up to `max_runs` or `max_seconds`. */
  runs: number;
  max_runs: number;
  max_seconds: number;
  /** Half width of the mean's 95 % interval, as a share of the mean, at which a case is measured well enough. */
  target_half_width: number;
  /** auto: operations shorter than their launch are replayed from a CUDA graph. */
  graph: 'auto' | 'always' | 'never';
  /** Compare each case once with a float64 reference. */
  check: boolean;
  seed: number;
  /** After all cases are timed, each runs a few more times under the framework's profiler, which writes to `folder`. */
  trace?: KernelTrace | null;
}

export interface KernelTrace {
  folder: string;
  /** Profiled runs of each case; each is a range `case:<case>`. */
  runs: number;
}

/** `case` was started (done: cases finished before it) or, if done = total, was the last one and has finished. */
export type KernelProgress = { type: 'case'; case: string; done: number; total: number };

/** Facts about the measured device reported by the framework; null if not reported. */
export interface KernelDevice {
  name: string;
  /** cuda:0, cpu */
  device: string;
  framework: string;
  sm_count: number | null;
  l2_bytes: number | null;
  memory_bytes: number | null;
  compute_capability: string | null;
  driver: string | null;
}

export interface KernelControl {
  /** `microbenchmark` lines are appended here after each case. */
  recordPath: string;
  /** Folder for output of the launch. */
  scratch: string;
  /** On abort the current case is ended soon, and all remaining ones are recorded as stopped. */
  signal: AbortSignal;
  onProgress: (progress: KernelProgress) => void;
  onDevice: (device: KernelDevice) => void;
}

/**
 * Runs an order: PyTorch (src/capture/kernels/runner.ts) or ONNX Runtime. `launch` may throw if the process cannot be started; failed cases
 * are lines of the record and do not fail the launch. Aborting `control.signal` must also end a hung launch within seconds, by SIGKILL if
 * necessary.
 */
export interface KernelRunner {
  name: 'pytorch' | 'onnxruntime';
  version: string | null;
  /** Device as named in sessions: cpu, cuda:0. */
  device: string;
  launch(order: KernelOrder, control: KernelControl): EngineLaunch;
}

export const caseOutcomes = [
  'measured',
  'out_of_memory',
  'unsupported',
  'failed',
  'wrong',
  'stopped',
] as const;
export type CaseOutcome = (typeof caseOutcomes)[number];
