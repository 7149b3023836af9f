import type { Issue } from '../model/document.js';
import type { Capture } from '../model/manifest.js';
import type { ImportTarget, Workbench } from '../model/workbench.js';
import type { StageNameRule } from './stage-name-rules.js';

/** Destination of a file's rows, and the relation of its clock to the session's. */
export interface ImportContext {
  execution_id: string;
  capture_id: string;
  host: string;
  /** Wall clock and CLOCK_MONOTONIC at the session's time 0; null if unknown. */
  zero: { realtime_ns: bigint | null; monotonic_ns: number | null };
  /** The user's own stage names, tried before the built-in ones. */
  stageNames?: readonly StageNameRule[];
  /** Removes secrets from texts that come from the program: names of ranges, kernels, commands. */
  redact?: (text: string) => string;
  /**
   * The file is of one rank of several: read the calls of its collectives. Files with several ranks do so without it.
   */
  collectives?: boolean;
  /** Rank of the file's only process, for files that do not record it with their rows; 0 if absent. */
  rank?: number;
  /** State of the importers for all files of one import; absent for a file that is imported alone. */
  shared?: SharedState;
  /** Called periodically with the share done, 0 to 1. */
  progress?: (share: number) => void;
  /** Aborted by Ctrl-C; `load` then rejects with E_INTERRUPTED. */
  signal?: AbortSignal;
}

/** One object per class. */
export class SharedState {
  private readonly objects = new Map<unknown, unknown>();

  of<T>(kind: new () => T): T {
    if (!this.objects.has(kind)) this.objects.set(kind, new kind());
    return this.objects.get(kind) as T;
  }
}

export type Fact = string | number | boolean | null;

/** Facts that a capture records about itself, read before loading. */
export interface CaptureFacts {
  tool: { name: string; version: string | null };
  /** Wall clock of the source's own time 0, ns since the epoch; null if not recorded. */
  realtime_zero_ns: bigint | null;
  /** The program's command line, redacted by the caller; null if not recorded. */
  command: string[] | null;
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  /** Rank of the process in its job, and the number of ranks, if the file has them. */
  rank?: number;
  world_size?: number;
  /**
   * `clean`: ran without a profiler; `profiled`: has a timeline; `counters` (ncu), `gemm-log` and `telemetry`: without a
   * timeline of their own; `results`: figures that another tool computed.
   */
  purpose: 'clean' | 'profiled' | 'counters' | 'gemm-log' | 'telemetry' | 'results';
}

/** Code of the issue for a timeline without kernels. */
export const noKernelsIssue = 'no_kernels';

export interface ImportOutcome {
  clock: Capture['clock'];
  issues: Issue[];
}

/** One file format. */
export interface Importer<Outcome extends ImportOutcome = ImportOutcome> {
  name: string;
  /** Analyses read the file itself, so it is stored even with --no-raw, and gets a separate session. */
  keepsFile?: true;
  /**
   * Fast: reads only the first bytes (64 KiB, decompressed if the file is gzip; latin1). For a folder `firstBytes` has
   * the names of its files, one per line.
   */
  sniff(firstBytes: string, fileName: string): boolean;
  /**
   * @param workbench for a format with Parquet tables of its own
   * @throws E_TRACE_FILE
   */
  facts(path: string, workbench: Workbench): Promise<CaptureFacts>;
  /**
   * Secret values in the program's environment, if the format records it: removed from every stored text, and never
   * stored themselves.
   */
  secrets?(path: string, workbench: Workbench): Promise<string[]>;
  /** @throws E_TRACE_FILE, E_RECORD_FILE if the file does not have the sniffed format, or is truncated */
  load(path: string, target: ImportTarget, context: ImportContext): Promise<Outcome>;
}
