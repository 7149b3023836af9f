import type { Evidence } from '../../model/documents/explain.js';
import type { FoundDraft } from './rule.js';

type Doubt = Pick<FoundDraft, 'title' | 'cause' | 'change' | 'check'> &
  Partial<Pick<FoundDraft, 'stage' | 'confidence' | 'bars' | 'evidence'>>;

/** A finding that is no matter of a stage's time: nothing is at stake in ms, and nothing to gain is claimed. */
export function doubt(about: Doubt): FoundDraft {
  return {
    stage: null,
    at_stake_ms: null,
    gain: null,
    confidence: 'high',
    bars: [],
    evidence: [],
    ...about,
  };
}

/** Evidence that another analysis of the session gave: its words, not a query of ours. */
export function said(text: string, rows: Evidence['rows'] = []): Evidence {
  return { text, sql: null, rows: rows.slice(0, 10), row_count: rows.length };
}
