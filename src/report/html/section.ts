import type { Child } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import type { ProfileResult } from '../../model/documents/profile.js';

/** A part of the report with its own anchor; the page and its table of contents are made from a list of these. */
export interface Section<T = ProfileResult> {
  id: string;
  title: string;
  render: (document: Document<T>) => Child;
}
