import type { Child } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { CountersResult } from '../../../model/documents/counters.js';
import type { GemmsResult } from '../../../model/documents/gemms.js';
import type { TraceResult } from '../../../model/documents/trace.js';
import type { Explanation } from '../document-page.js';

export type TraceDocument = Document<TraceResult>;

/** What the report of a GPU session is made from; null where the session has no such capture. */
export interface TraceReportInputs {
  trace: TraceDocument | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
  /** Waterfall and findings; left out by who has none. */
  explanation?: Explanation | undefined;
  /** What other captures of the session hold. */
  between?: Explanation['sections'] | undefined;
  /** Of the session, where there is no timeline that names it. */
  title?: string | undefined;
}

/** A part of the page; absent from page and contents where `applies` says so. */
export interface TraceSection {
  id: string;
  title: string;
  applies?: (trace: TraceDocument) => boolean;
  render: (trace: TraceDocument) => Child;
}
