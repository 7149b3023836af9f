import type { Diagnosis, ProfileResult } from '../model/documents/profile.js';
import { nbsp } from './format.js';
import { sentence } from './words.js';

export interface DiagnosisText {
  entry: Diagnosis;
  text: string;
  /** A sentence of its own; null where the entry names no decision. */
  decision: string | null;
}

/** Numbers keep to their units when the line breaks. */
const unbroken = (text: string): string => text.replaceAll(/(?<=\d) (?=(?:%|ms|MiB)(?!\w))/g, nbsp);

/** The diagnosis as sentences, verdicts first; empty for a document that has none. */
export function diagnosisTexts({ diagnosis = [] }: ProfileResult): DiagnosisText[] {
  return diagnosis.map((entry) => ({
    entry,
    text: unbroken(entry.text),
    decision: entry.decision === null ? null : unbroken(sentence(entry.decision)),
  }));
}
