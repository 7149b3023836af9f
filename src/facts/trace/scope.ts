import type { TimelineTable } from '../../model/derived-tables.js';
import type { TraceSource } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';

/** One rank on one device of one capture of one execution: what every analysis of a timeline looks at. */
export interface TraceScope {
  database: SessionDatabase;
  source: TraceSource;
  /** Makes these tables (model/derived-tables.ts) and those that they are made of, where they are not there yet. */
  need(...tables: TimelineTable[]): Promise<void>;
}

export interface ScopeOptions {
  rank?: number;
  device?: number;
}

/** SQL string literal; ids come from the manifest. */
export const literal = (value: string | number | null): string =>
  value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;

/** Place of what was launched in no stage. */
export const noStage = -1;

/** SQL of the key of place_of for a row of a table with stages. */
export const placeKey = (row: string): string => `coalesce(${row}.stage_id, ${noStage})`;

/** Whether the engine recorded its repeats next to the timeline: the last step of one then ends with it. */
export const recordsRepeats = ({ attribution }: TraceSource): boolean =>
  attribution.stages_capture_id !== undefined;

/** What the rows of derived tables depend on. */
export const scopeKey = ({ attribution, focus }: TraceSource): string =>
  JSON.stringify([attribution.execution_id, attribution.capture_id, focus.rank, focus.device]);
