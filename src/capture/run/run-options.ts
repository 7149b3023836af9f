import type { Issue } from '../../model/document.js';
import type { InferscopeError } from '../../model/errors.js';
import type { Execution } from '../../model/manifest.js';
import type { Row } from '../../model/tables.js';
import type { GpuFacts } from '../telemetry-gpus.js';

/** Kernels worth an ncu replay. */
export interface KernelChoice {
  /** Function names without namespace, template arguments and parameters. */
  names: string[];
  /** Basis of the choice, e.g. `by nsys, of decode, prefill`. */
  source: string;
}

export const evaluators = ['nsys', 'ncu', 'torch', 'none'] as const;
export type Evaluator = (typeof evaluators)[number];

export interface NsysOptions {
  /** Traces in addition to CUDA and NVTX, e.g. cublas, cudnn, osrt. */
  trace: string[];
  /** Collect between cudaProfilerStart and cudaProfilerStop, or inside one NVTX range; null: the whole run. */
  captureRange: { kind: 'cudaProfilerApi' } | { kind: 'nvtx'; name: string } | null;
  /** Passed to `nsys profile` unchanged. */
  args: string[];
}

export interface NcuOptions {
  set: 'full' | 'basic' | 'detailed' | 'roofline';
  /** Profiled launches per kernel and launch size. */
  launchCount: number;
  /** Names of kernels, as ncu's regular expression; null: the hot ones, if known. */
  kernel: string | null;
  /** ncu's NVTX filters, e.g. `decode/`. */
  nvtx: string[];
  /** Collect between cudaProfilerStart and cudaProfilerStop only. */
  profilerApi: boolean;
  args: string[];
}

/** What a launcher of several processes (ranks) requires of the run of one of them. */
export interface RunJob {
  /** Whether this rank samples the GPUs: one rank per host does. */
  samplesGpus: boolean;
  /** Waits until all ranks are about to start this execution (not for the first one). @returns variables for its program */
  waitForRanks: (executionId: string, signal: AbortSignal) => Promise<Record<string, string>>;
}

interface TorchOptions {
  shapes: boolean;
  memory: boolean;
  stack: boolean;
  flops: boolean;
}

export interface RunOptions {
  /** The program and its arguments, untouched. */
  command: string[];
  evaluators: Evaluator[];
  /** One more execution with the cuBLAS and cuBLASLt logs on. */
  gemmLog: boolean;
  /** Whether to mark stages of transformers programs without marks (python/inferscope_probe/inferscope_hooks.py). */
  hooks: boolean;
  nsys: NsysOptions;
  ncu: NcuOptions;
  torch: TorchOptions;
  /** Per execution; null: no limit. */
  timeoutMs: number | null;
  /** Folder for the files of the executions; each gets a subfolder. */
  scratch: string;
  /** Values replaced in the stored logs, messages and commands. */
  secrets: string[];
  /** Where the program's stdout and stderr are shown; null: nowhere. */
  stdout: NodeJS.WritableStream | null;
  stderr: NodeJS.WritableStream | null;
  /** First Ctrl-C: sends SIGINT (or the signal in `reason`) to the program and waits for it. */
  signal: AbortSignal;
  /** Second Ctrl-C: kills the program and its children. */
  kill: AbortSignal;
  /** Hot kernels of an earlier session; null: those of the nsys execution of this run, if there is one. */
  kernels: KernelChoice | null;
  /** Null without a launcher. */
  job: RunJob | null;
  onProgress: (progress: RunProgress) => void;
}

export type RunProgress =
  | { type: 'start'; execution_id: string; words: string }
  | { type: 'end'; execution: RunExecution };

export type FileKind =
  | 'nsys-rep'
  | 'ncu-rep'
  | 'kineto'
  | 'cublas-log'
  | 'cublaslt-log'
  | 'record'
  | 'stdout'
  | 'stderr';

export interface RunExecution {
  /** clean, nsys, ncu, torch or gemm-log */
  execution_id: string;
  purpose: Execution['purpose'];
  /** The program's command line, redacted; the profiler's own part is in `tool`. */
  command: string[];
  /** Exit code of the program, or of the profiler that forwards it; null if killed by a signal or not started. */
  exit_code: number | null;
  signal: string | null;
  /** CLOCK_MONOTONIC, ns. */
  start_ns: number;
  end_ns: number;
  /** command: the profiler's command line in front of the program's. */
  tool: { name: string; version: string | null; command: string[] } | null;
  /** How profiling was limited, one sentence; null without a limit. */
  bounds: string | null;
  /** Existing non-empty files. */
  files: { path: string; kind: FileKind }[];
  telemetry: Row<'telemetry'>[];
  memory: Row<'memory'>[];
  issues: Issue[];
  /** vLLM's processes as its log names them, e.g. "EngineCore pid=2524". */
  engineProcesses: string[];
  timedOut: boolean;
  /** Why this execution is incomplete; its output is still in `files`. */
  failure: InferscopeError | null;
}

export interface RunCapture {
  executions: RunExecution[];
  issues: Issue[];
  /** Facts about the GPUs of this machine from the driver. */
  facts: GpuFacts;
  /** Whether Ctrl-C stopped it before the last execution finished. */
  stopped: boolean;
}
