import type { Child } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { ExplainResult } from '../../../model/documents/explain.js';
import type { CountersResult } from '../../../model/documents/counters.js';
import type { GemmsResult } from '../../../model/documents/gemms.js';
import type { TraceResult } from '../../../model/documents/trace.js';

export type TraceDocument = Document<TraceResult>;

/** What the report of a GPU session is made from; null where the session has no such capture. */
export interface TraceReportInputs {
  trace: TraceDocument | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
  /** Waterfall and findings; left out by who has none. */
  explain?: Document<ExplainResult> | null;
}

/** A part of the page; absent from page and contents where `applies` says so. */
export interface TraceSection {
  id: string;
  title: string;
  applies?: (trace: TraceDocument) => boolean;
  render: (trace: TraceDocument) => Child;
}
