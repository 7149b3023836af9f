import type { Issue } from '../../model/document.js';
import type { InferscopeError } from '../../model/errors.js';
import type { Execution } from '../../model/manifest.js';
import type { Row } from '../../model/tables.js';
import type { GpuFacts } from '../telemetry-gpus.js';

/** Kernels worth an ncu replay. */
export interface KernelChoice {
  /** Function names without namespace, template arguments and parameters, hottest first. */
  names: string[];
  /** What the choice rests on, e.g. `the nsys execution of this run: prefill and decode`. */
  source: string;
}

export const evaluators = ['nsys', 'ncu', 'torch', 'none'] as const;
export type Evaluator = (typeof evaluators)[number];

export interface NsysOptions {
  /** What is traced beside CUDA and NVTX, e.g. cublas, cudnn, osrt. */
  trace: string[];
  /** Collect between cudaProfilerStart and cudaProfilerStop, or inside one NVTX range; null: from start to end. */
  captureRange: { kind: 'cudaProfilerApi' } | { kind: 'nvtx'; name: string } | null;
  /** Passed on to `nsys profile` as they are. */
  args: string[];
}

export interface NcuOptions {
  set: 'full' | 'basic' | 'detailed' | 'roofline';
  /** Launches profiled of each kernel and launch size. */
  launchCount: number;
  /** Names of kernels, as ncu's regular expression; null: the hot ones, where they are known. */
  kernel: string | null;
  /** ncu's NVTX filters, e.g. `decode/`. */
  nvtx: string[];
  /** Collect between cudaProfilerStart and cudaProfilerStop only. */
  profilerApi: boolean;
  args: string[];
}

export interface TorchOptions {
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
  nsys: NsysOptions;
  ncu: NcuOptions;
  torch: TorchOptions;
  /** For each execution; null: none. */
  timeoutMs: number | null;
  /** A folder for what the executions write; one folder each is made in it. */
  scratch: string;
  /** Values replaced in the kept logs, messages and commands. */
  secrets: string[];
  /** Where the program's stdout and stderr go while it runs; null: nowhere. */
  stdout: NodeJS.WritableStream | null;
  stderr: NodeJS.WritableStream | null;
  /** First Ctrl-C: the program gets SIGINT (the signal's `reason` where it names another), and is waited for. */
  signal: AbortSignal;
  /** Second Ctrl-C: the program and its children are killed. */
  kill: AbortSignal;
  /** Hot kernels of an earlier session; null: those of the nsys execution of this run, if there is one. */
  kernels: KernelChoice | null;
  onProgress: (progress: RunProgress) => void;
}

export type RunProgress =
  { type: 'start'; execution_id: string; words: string } | { type: 'end'; execution: RunExecution };

export type FileKind =
  'nsys-rep' | 'ncu-rep' | 'kineto' | 'cublas-log' | 'cublaslt-log' | 'record' | 'stdout' | 'stderr';

export interface RunExecution {
  /** clean, nsys, ncu, torch or gemm-log */
  execution_id: string;
  purpose: Execution['purpose'];
  /** The program's command line, redacted; the profiler's own part is in `tool`. */
  command: string[];
  /** Of the program, or of the profiler around it, which passes it on. Null when a signal ended it. */
  exit_code: number | null;
  signal: string | null;
  /** CLOCK_MONOTONIC, ns. */
  start_ns: number;
  end_ns: number;
  /** command: the profiler's command line in front of the program's. */
  tool: { name: string; version: string | null; command: string[] } | null;
  /** How the profiling was bounded, one sentence; null when it was not. */
  bounds: string | null;
  /** Those that exist and are not empty. */
  files: { path: string; kind: FileKind }[];
  telemetry: Row<'telemetry'>[];
  memory: Row<'memory'>[];
  issues: Issue[];
  /** Of vLLM, as its log names them, e.g. "EngineCore pid=2524". */
  engineProcesses: string[];
  timedOut: boolean;
  /** Why this execution is of less use than it should be; what it left behind is in `files` all the same. */
  failure: InferscopeError | null;
}

export interface RunCapture {
  executions: RunExecution[];
  issues: Issue[];
  /** As the driver names the GPUs of this machine. */
  facts: GpuFacts;
  /** Ctrl-C ended it before the last execution did. */
  stopped: boolean;
}
