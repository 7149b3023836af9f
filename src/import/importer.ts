import type { Issue } from '../model/document.js';
import type { Capture } from '../model/manifest.js';
import type { TableSink } from '../model/tables.js';

/** Where a file's rows belong, and how its clock relates to the session's. */
export interface ImportContext {
  execution_id: string;
  capture_id: string;
  host: string;
  /** CLOCK_MONOTONIC at the session's time 0, ns; sources on that clock subtract it. */
  originMonotonicNs: number;
  /** Calls into the engine in the order they were made, session time: sources without a clock of ours are laid on them. */
  calls: StageCall[];
}

export interface StageCall {
  stage_id: number;
  start_ns: number;
  end_ns: number;
}

export interface ImportOutcome {
  clock: Capture['clock'];
  issues: Issue[];
}

/** One file format. `load` streams: it never holds a whole trace. */
export interface Importer<Outcome extends ImportOutcome = ImportOutcome> {
  name: string;
  /** Cheap: looks at the first bytes only. */
  sniff(firstBytes: string, fileName: string): boolean;
  /** @throws E_TRACE_FILE, E_RECORD_FILE when the file is not what the sniffer took it for, or is cut off */
  load(path: string, sink: TableSink, context: ImportContext): Promise<Outcome>;
}
