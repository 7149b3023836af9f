import type { Document } from '../document.js';
import type { CollectivesResult } from './collectives.js';
import type { CountersResult } from './counters.js';
import type { GemmsResult } from './gemms.js';
import type { TraceResult } from './trace.js';

/** Everything that captures of other tools in a session answer; null where the session has no rows for it. */
export interface CapturesResult {
  /** `kind`: the command that made it. */
  session: { id: string; kind: string; title: string; started_at: string };
  trace: Document<TraceResult> | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
  collectives: Document<CollectivesResult> | null;
}
