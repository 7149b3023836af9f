import type { Child } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { TraceResult } from '../../../model/documents/trace.js';

/** What the report of a GPU session is made from; null where the session has no such capture. */
export interface TraceReportInputs {
  trace: Document<TraceResult>;
}

/** A part of the page; absent from page and contents where `applies` says so. */
export interface TraceSection {
  id: string;
  title: string;
  applies?: (inputs: TraceReportInputs) => boolean;
  render: (inputs: TraceReportInputs) => Child;
}
