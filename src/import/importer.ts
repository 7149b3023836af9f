import type { Issue } from '../model/document.js';
import type { Capture } from '../model/manifest.js';
import type { ImportTarget, Workbench } from '../model/workbench.js';
import type { StageNameRule } from './stage-name-rules.js';

/** Where a file's rows belong, and how its clock relates to the session's. */
export interface ImportContext {
  execution_id: string;
  capture_id: string;
  host: string;
  /** Wall clock and CLOCK_MONOTONIC at the session's time 0; null where nobody knows it. */
  zero: { realtime_ns: bigint | null; monotonic_ns: number | null };
  /** The user's own stage names, tried before the built-in ones. */
  stageNames?: readonly StageNameRule[];
  /** Takes secrets out of texts that come from the program: names of ranges, kernels, commands. */
  redact?: (text: string) => string;
  /** Called now and then with the share done, 0 to 1. */
  progress?: (share: number) => void;
  /** Aborted by Ctrl-C: `load` then rejects with E_INTERRUPTED. */
  signal?: AbortSignal;
}

export type Fact = string | number | boolean | null;

/** What a capture tells about itself; read in milliseconds, before anything is loaded. */
export interface CaptureFacts {
  tool: { name: string; version: string | null };
  /** Wall clock of the source's own time 0, ns since the epoch; null when the file does not tell. */
  realtime_zero_ns: bigint | null;
  /** The program's command line, redacted by the caller; null when the file does not tell. */
  command: string[] | null;
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  /**
   * clean ran without a profiler, profiled has a timeline; counters (ncu), gemm-log and telemetry join it by other keys; results are what another
   * benchmark tool measured.
   */
  purpose: 'clean' | 'profiled' | 'counters' | 'gemm-log' | 'telemetry' | 'results';
}

/** Code of the issue that a timeline has no kernel in it. */
export const noKernelsIssue = 'no_kernels';

export interface ImportOutcome {
  clock: Capture['clock'];
  issues: Issue[];
}

/** One file format. `load` streams: it never holds a whole trace. */
export interface Importer<Outcome extends ImportOutcome = ImportOutcome> {
  name: string;
  /** Analyses read the file itself: it is kept with --no-raw too, and has a session of its own. */
  keepsFile?: true;
  /**
   * Cheap: looks at the first bytes only (64 KiB, decompressed when the file is gzip; latin1). For a folder
   * `firstBytes` is the names of its files, one a line.
   */
  sniff(firstBytes: string, fileName: string): boolean;
  /**
   * @param workbench for a format whose own tables are Parquet
   * @throws E_TRACE_FILE
   */
  facts(path: string, workbench: Workbench): Promise<CaptureFacts>;
  /**
   * Values of secrets in the program's environment, where the format keeps it: to be taken out of every text that is
   * kept, and not to be kept themselves.
   */
  secrets?(path: string, workbench: Workbench): Promise<string[]>;
  /** @throws E_TRACE_FILE, E_RECORD_FILE when the file is not what the sniffer took it for, or is cut off */
  load(path: string, target: ImportTarget, context: ImportContext): Promise<Outcome>;
}
