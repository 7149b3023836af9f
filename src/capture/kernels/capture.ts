import type { Issue } from '../../model/document.js';
import type { KernelDevice, KernelOrder, KernelProgress } from '../../model/kernels.js';
import type { Row } from '../../model/tables.js';
import type { KernelRunner } from './runner.js';

/**
 * Options of measureCases. An order may contain cases of one GPU and collectives; they run in separate processes, in
 * sequence.
 */
export interface KernelOptions {
  runner: KernelRunner;
  /** `microbenchmark` lines, one per case of the order, with any outcome. */
  recordPath: string;
  scratch: string;
  host: string;
  signal: AbortSignal;
  onProgress: (progress: KernelProgress) => void;
  /** Clocks, power, temperature and throttling of the GPUs, after each launch; t_ns is CLOCK_MONOTONIC. */
  onRows: (rows: { telemetry: Row<'telemetry'>[]; memory: Row<'memory'>[] }) => void;
  /** A case that takes longer counts as hung, and its process is killed; default: 10 × order.max_seconds, at least two minutes. */
  patienceMs?: number;
}

/** One process that ran cases. */
interface KernelLaunch {
  launch: number;
  cases: string[];
  failure: unknown;
  log: string | null;
}

export interface KernelCapture {
  order: KernelOrder;
  recordPath: string;
  launches: KernelLaunch[];
  /** Null when no process reported it. */
  device: KernelDevice | null;
  start_ns: number;
  end_ns: number;
  /** Captures of the samplers with data. */
  sampled: string[];
  /** Other processes on the GPU, launches that died or hung, samplers that were late. */
  issues: Issue[];
  stopped: boolean;
}
