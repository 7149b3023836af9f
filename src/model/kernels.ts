/**
 * What the roofline and kernels commands ask of a process that runs operations (PyTorch on a GPU, ONNX Runtime on a
 * CPU). The order travels as JSON; what was measured comes back as `microbenchmark` lines of the record file.
 */
import type { EngineLaunch } from './engine.js';

/** Operations of LLMs and their neighbors. */
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

/** What a machine's roofline is made of, besides GEMMs. */
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
  /** Where the framework has several: flash, efficient, cudnn, math; null is the framework's own choice. */
  backend: string | null;
  /** Names of src/model/dtype.ts, and tfloat32 for float32 matrices on tensor cores. */
  dtype: string;
  params: Record<string, number>;
  /** Floating-point operations of one run; matrix multiplications count 2 a multiply-add. */
  flops: number;
  /** Bytes that one run must move: each input and output once. */
  bytes: number;
}

export interface KernelOrder {
  v: 1;
  execution_id: string;
  device: string | null;
  cases: KernelCase[];
  /** Timed runs of each case, at least; more until the interval is narrow, `max_runs` or `max_seconds` at the latest. */
  runs: number;
  max_runs: number;
  max_seconds: number;
  /** Half of the 95 % interval of the mean, as a share of it, at which a case is measured well enough. */
  narrow: number;
  /** auto: operations shorter than their launch are replayed from a CUDA graph. */
  graph: 'auto' | 'always' | 'never';
  /** Compare each case once with a float64 reference. */
  check: boolean;
  seed: number;
  /** After all are timed, each runs a few more times under the framework's profiler, which writes to `folder`. */
  trace?: KernelTrace | null;
}

export interface KernelTrace {
  folder: string;
  /** Runs of each case that are watched; each is a range `case:<case>` of its own. */
  runs: number;
}

/** `case` was started (done: cases finished before it), or, with done = total, was the last one and is finished. */
export type KernelProgress = { type: 'case'; case: string; done: number; total: number };

/** What the framework says of the device that it measures; null where it does not say it. */
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
  /** `microbenchmark` lines are appended here, each case's when it is done. */
  recordPath: string;
  /** Folder for what the launch leaves behind. */
  scratch: string;
  /** On abort the case at work is ended soon, and all that are open are recorded as stopped. */
  signal: AbortSignal;
  onProgress: (progress: KernelProgress) => void;
  onDevice: (device: KernelDevice) => void;
}

/**
 * What runs an order: PyTorch (src/capture/kernels/runner.ts) or ONNX Runtime. `launch` may throw when the process
 * cannot be started; cases that fail are lines of the record and no failure of the launch. Aborting `control.signal`
 * is how a hung launch is ended, too: it must be gone within seconds of it, if need be by SIGKILL.
 */
export interface KernelRunner {
  name: 'pytorch' | 'onnxruntime';
  version: string | null;
  /** cpu, cuda:0; as sessions name it. */
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
