import type { TimelineTable } from '../../model/derived-tables.js';
import type { TraceSource } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';

/** One rank on one device of one capture and execution: the scope of every timeline analysis. */
export interface TraceScope {
  database: SessionDatabase;
  source: TraceSource;
  /** Makes these tables (model/derived-tables.ts) and their inputs, if they do not exist. */
  need(...tables: TimelineTable[]): Promise<void>;
}

export interface ScopeOptions {
  /** Null: rows without one. */
  rank?: number | null;
  device?: number | null;
  /** capture_id; default: the capture that disturbs the program least. */
  capture?: string;
}

/** SQL literal; ids come from the manifest. */
export const literal = (value: string | number | null): string =>
  value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;

/** Key of activities launched outside of stages. */
export const noStage = -1;

/** SQL of the key of stage_places, for a row of a table with stages. */
export const placeKey = (row: string): string => `coalesce(${row}.stage_id, ${noStage})`;

/** Whether the engine recorded its repeats with the timeline. The last step of a repeat then ends with it. */
export const recordsRepeats = ({ attribution }: TraceSource): boolean =>
  attribution.stages_capture_id !== undefined;

/** Key of the attribution and focus that rows of derived tables depend on. */
export const scopeKey = ({ attribution, focus }: TraceSource): string =>
  JSON.stringify([attribution.execution_id, attribution.capture_id, focus.rank, focus.device]);
