import type { FoundDraft } from './rule.js';

type Doubt = Pick<FoundDraft, 'title' | 'cause' | 'change' | 'check' | 'evidence'> &
  Partial<Pick<FoundDraft, 'stage' | 'severity' | 'confidence' | 'bars' | 'noise'>>;

/** A finding that is not about stage time: no affected ms, no gain. */
export function doubt(about: Doubt): FoundDraft {
  return {
    stage: null,
    at_stake_ms: null,
    gain: null,
    confidence: 'high',
    bars: [],
    ...about,
  };
}
