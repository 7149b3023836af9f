import type { RuleFinding, TitledDraft } from '../findings/ranking.js';
import type { FindingContext } from '../findings/rule.js';
import { InferscopeError } from '../../model/errors.js';
import { applyChanges, type StageResult } from './apply-changes.js';
import { initialStates } from './initial-state.js';
import type { StageState } from './stage-state.js';
import { parseChanges } from './words.js';
import { capitalize } from '../../vocabulary/sentence.js';

/** Expected saving of a change per mean instance of a stage, or per token if steps do not get shorter. */
interface ExpectedGain {
  per: 'stage' | 'token';
  before_ms: number;
  expected_ms: number;
  low_ms: number;
  high_ms: number;
  after_ms: number;
  assumption: string;
}

/**
 * The expected gain of a change that `--what-if` can compute. Findings and verification use it, so a change has one gain and one
 * interval.
 * @param word as `--what-if` takes it: int4, batch-size=8
 * @returns null if the stage lacks data for a prediction
 */
export function expectedGain(state: StageState, word: string): ExpectedGain | null {
  const result = resultOf(state, word);
  if (result === null) return null;
  const { before_ms: before, after_ms: after, per_token_before_ms: tokenBefore } = result;
  if (before.value === null || after.value === null) return null;
  const perToken = tokenBefore !== null && result.per_token_after_ms !== null;
  const tokens = perToken ? after.value / result.per_token_after_ms! : 1;
  const from = perToken ? tokenBefore : before.value;
  const [low, high] = after.ci95 ?? [after.value, after.value];
  return {
    per: perToken ? 'token' : 'stage',
    before_ms: from,
    expected_ms: from - after.value / tokens,
    low_ms: Math.max(0, from - high / tokens),
    high_ms: from - low / tokens,
    after_ms: after.value / tokens,
    assumption: assumptionText(result),
  };
}

function resultOf(state: StageState, word: string): StageResult | null {
  try {
    return applyChanges(state, parseChanges([word]));
  } catch (error) {
    // The device has no peak in the dtype: no gain.
    if (error instanceof InferscopeError && error.code === 'E_DTYPE') return null;
    throw error;
  }
}

const assumptionText = ({ assumptions, unchanged }: StageResult): string => {
  // Those of a finding are sentences already.
  const text = [...unchanged.map(({ why }) => why), ...assumptions]
    .map((assumption) => assumption.replace(/\.$/u, ''))
    .join('; ');
  return `${capitalize(text)}.`;
};

/** Gains of drafts with a `--what-if` change, computed by it; if it cannot, the rule's own gain stays. */
export async function withExpectedGains(
  context: FindingContext,
  ruleFindings: readonly RuleFinding[],
): Promise<RuleFinding[]> {
  if (!ruleFindings.some(({ draft }) => draft.gain?.what_if)) return [...ruleFindings];
  const drafts = ruleFindings.map(({ draft }) => draft);
  const states = await initialStates(context.session, context, drafts);
  return ruleFindings.map((entry) => ({ ...entry, draft: withExpectedGain(entry.draft, states) }));
}

function withExpectedGain(draft: TitledDraft, states: readonly StageState[]): TitledDraft {
  const { gain, stage } = draft;
  if (!gain?.what_if) return draft;
  const state = states.find(({ waterfall }) => waterfall.kind === stage);
  const expected = state ? expectedGain(state, gain.what_if) : null;
  if (!state || expected === null) return { ...draft, gain: { ...gain, what_if: null } };
  const { before_ms: _before, ...numbers } = expected;
  return { ...draft, gain: { ...numbers, what_if: gain.what_if } };
}
