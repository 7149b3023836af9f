import type { Document } from '../document.js';
import type { CollectivesResult } from './collectives.js';
import type { CountersResult } from './counters.js';
import type { GemmsResult } from './gemms.js';
import type { TraceResult } from './trace.js';
import type { UtilizationResult } from './utilization.js';

/** Everything that captures of other tools in a session answer; null where the session has no rows for it. */
export interface CapturesResult {
  /** `kind`: the command that made it. */
  session: { id: string; kind: string; title: string; started_at: string };
  trace: Document<TraceResult> | null;
  /** Steps that a program recorded without a profiler; null where it timed none. */
  steps: Document<UtilizationResult> | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
  collectives: Document<CollectivesResult> | null;
}
